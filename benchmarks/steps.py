"""The phases of an inference method as functions that run a number of iterations."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.fits.prepare import prepare
from deepwell.fits.presets import make_settings
from deepwell.inference.driver import _compiled


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
    chosen = make_settings(
        "paper", **{"inference": inference, "spacing": 1, "burn_in": 1, "num_samples": 1, **settings}
    )
    prepared = [prepare(*table(rows, columns), chosen, seed, None) for seed in range(members)]
    run = prepared[0].run
    if members > 1:
        key, problem, rows = jax.tree.map(lambda *x: jnp.stack(x), *[(p.key, p.problem, p.rows) for p in prepared])
        run = run._replace(key=key, problem=problem, rows=rows)
    for name, advance, arguments in phases(run):

        def iterate(count: int, advance: Callable = advance, arguments: Any = arguments) -> None:
            jax.block_until_ready(advance(*arguments, jnp.asarray(0), jnp.asarray(count)))

        yield name, iterate


def phases(run: Run) -> Iterator[tuple[str, Callable, Any]]:
    """Name, compiled ``advance`` and its arguments up to the iterations, for each phase of a run."""
    newest: list[Any] = []

    def call(function: Callable, axes: tuple, config: Config, *arrays: Any) -> Any:
        compiled = _compiled(function, axes if run.is_group else None, True)
        if any(phase.advance is function for phase in run.phases):
            newest[:] = [compiled, (config, *arrays[:-2])]
        return compiled(config, *arrays)

    for chunk in chunks(run, call, whole=True):
        yield run.phases[chunk.number].name, newest[0], newest[1]
