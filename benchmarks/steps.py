"""The phases of an inference method as functions that run a number of iterations."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.fits.prepare import prepare
from deepwell.fits.presets import make_settings
from deepwell.inference.driver import _compiled
from deepwell.inference.registry import METHODS


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of noisy inputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(rows)


def programs(
    inference: str, rows: int, columns: int, members: int = 1, **settings: Any
) -> Iterator[tuple[str, Callable[[int], None]]]:
    """(name, function that runs a number of iterations) for each phase of a method, preset ``paper``.

    ``members`` fits that differ in their seeds run as one program. The first call of a function compiles it.
    """
    chosen = make_settings("paper", inference=inference, spacing=1, **settings)
    prepared = [prepare(*table(rows, columns), chosen, seed, None) for seed in range(members)]
    config, method, grouped = prepared[0].config, METHODS[inference], members > 1
    problem, data, key = jax.tree.map(
        lambda *x: jnp.stack(x) if grouped else x[0], *[(p.problem, p.rows, p.key) for p in prepared]
    )
    state = _compiled(method.start, grouped)(config, key, problem, data)
    for phase in method.phases(config):
        if phase.enter is not None:
            state = _compiled(phase.enter, grouped)(config, problem, data, state)
        context = problem
        if phase.context is not None:
            context = _compiled(phase.context, grouped)(config, key, problem, data, state)
        advance = _compiled(phase.advance, grouped, shared=2, long_run=True)

        def run(count: int, advance: Callable = advance, context: Any = context, state: Any = state) -> None:
            jax.block_until_ready(advance(config, key, context, data, state, jnp.asarray(0), jnp.asarray(count)))

        yield phase.name, run
        state, _ = advance(config, key, context, data, state, jnp.asarray(0), jnp.asarray(1))
