"""The driver: any method, its phases in compiled chunks; many problems of one shape as one program if asked."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from deepwell.data.rows import Rows
from deepwell.inference.compiling import quick_jit
from deepwell.inference.method import Troubles
from deepwell.inference.methods import METHODS
from deepwell.inference.posteriors import Posterior
from deepwell.inference.problem import Config

Progress = Callable[[str, int, int, float], None]
"""(phase, iterations done, iterations in all, mean training log-likelihood of the last chunk)."""


class Result(NamedTuple):
    """The posterior, (iteration, mean training log-likelihood) after every chunk, and the troubles met."""

    posterior: Posterior
    trace: list[tuple[int, float]]
    troubles: Troubles


def run(key: PRNGKeyArray, problem: Any, rows: Rows, config: Config, progress: Progress) -> Result:
    """One problem."""
    posterior, troubles, trace = _run(key, problem, rows, config, progress, grouped=False)
    return Result(posterior, [(done, float(fit)) for done, fit in trace], jax.tree.map(int, troubles))


def run_group(keys: PRNGKeyArray, problem: Any, rows: Rows, config: Config, progress: Progress) -> list[Result]:
    """Problems stacked along the leading axis of every array, as one program: on a GPU little dearer than one."""
    posteriors, troubles, trace = _run(keys, problem, rows, config, progress, grouped=True)

    def member(i: int) -> Result:
        own: Posterior = jax.tree.map(lambda x: x[i], posteriors)
        met = jax.tree.map(lambda x: int(x[i]), troubles)
        return Result(own, [(done, float(fits[i])) for done, fits in trace], met)

    return [member(i) for i in range(len(keys))]


def _run(
    key: PRNGKeyArray, problem: Any, rows: Rows, config: Config, progress: Progress, grouped: bool
) -> tuple[Posterior, Troubles, list[tuple[int, np.ndarray]]]:
    method = METHODS[config.method]
    phases = method.phases(config)
    total = sum(phase.iterations for phase in phases)
    fold = jax.vmap(jax.random.fold_in, (0, None)) if grouped else jax.random.fold_in
    keys = [fold(key, i) for i in range(len(phases) + 2)]
    state = _compiled(method.start, grouped)(config, keys[-1], problem, rows)
    trace: list[tuple[int, np.ndarray]] = []
    before = 0
    for phase, phase_key in zip(phases, keys, strict=False):
        if phase.enter is not None:
            state = _compiled(phase.enter, grouped)(config, problem, rows, state)
        context = problem if phase.context is None else _compiled(phase.context, grouped)(config, problem, rows, state)
        advance = _compiled(phase.advance, grouped, shared=2)
        for done in range(0, phase.iterations, phase.chunk):
            end = min(done + phase.chunk, phase.iterations)
            state, fit = advance(config, phase_key, context, rows, state, jnp.asarray(done), jnp.asarray(end))
            trace.append((before + end, np.asarray(fit)))
            progress(phase.name, before + end, total, float(np.mean(trace[-1][1])))
        before += phase.iterations
    posterior, troubles = _compiled(method.finish, grouped)(config, keys[-2], problem, state)
    return posterior, troubles, trace


@functools.cache
def _compiled(function: Callable, grouped: bool, shared: int = 0) -> Callable:
    """``function(config, *arrays)`` compiled, config static; grouped: over the leading axis of all arrays but the
    last ``shared`` ones."""

    @functools.wraps(function)
    def call(config: Config, *arrays: Any) -> Any:
        if not grouped:
            return function(config, *arrays)
        axes = (0,) * (len(arrays) - shared) + (None,) * shared
        return jax.vmap(functools.partial(function, config), axes)(*arrays)

    return quick_jit(call, static_argnums=(0,))
