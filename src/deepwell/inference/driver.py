"""The driver: any method, its phases in compiled chunks; many problems of one shape as one program if asked.

Between chunks the run can be kept (a checkpoint), stopped, and gone on with, bit for bit: a chunk is a pure function of
the state, keys are folded from the iteration's number, and chunks have fixed ends.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from deepwell.data.rows import Rows
from deepwell.inference.method import Method, Phase, Troubles
from deepwell.inference.posterior import Posterior
from deepwell.inference.problem import Config
from deepwell.inference.registry import METHODS
from deepwell.numerics.jit import quick_jit

Progress = Callable[[str, int, int, float], None]
"""(phase, iterations done, iterations in all, mean training log-likelihood of the last chunk)."""

Trace = list[tuple[int, np.ndarray]]

LONG_WORK = 3e9
"""Iterations times rows times unknowns from which on a program's speed outweighs its compilation."""

Valid = Callable[[int, int], bool]
Template = Callable[[int], PyTree]


class Place(NamedTuple):
    """How far a run has come: the phase, its iterations done, the trace so far, and the seconds it has taken."""

    phase: int
    done: int
    trace: Trace
    seconds: float = 0.0


class Keeper(NamedTuple):
    """What happens to a run between chunks.

    restore(valid, template) -> (place, state) to go on from, or None, where valid(phase, done) says whether a place
    is the end of a chunk and template(phase) is what the state looks like in a phase;
    keep(place, state) after every chunk; stop() says whether to stop there.
    """

    restore: Callable[[Valid, Template], tuple[Place, PyTree] | None]
    keep: Callable[[Place, PyTree], None]
    stop: Callable[[], bool]


class Result(NamedTuple):
    """The posterior, (iteration, mean training log-likelihood) after every chunk, the troubles met, and the seconds
    before the checkpoint that the run went on from."""

    posterior: Posterior
    trace: list[tuple[int, float]]
    troubles: Troubles
    earlier_seconds: float


class Stopped(Exception):  # noqa: N818
    """The run was stopped between chunks; ``result`` is what it was worth by then, if anything."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("stopped")
        self.result = result


def run(
    key: PRNGKeyArray, problem: Any, rows: Rows, config: Config, progress: Progress, keeper: Keeper | None = None
) -> Result:
    """One problem."""
    return _result(*_run(key, problem, rows, config, progress, keeper, grouped=False))


def run_group(
    keys: PRNGKeyArray, problem: Any, rows: Rows, config: Config, progress: Progress, keeper: Keeper | None = None
) -> list[Result]:
    """Problems stacked along the leading axis of every array, as one program: on a GPU ten cost 3 to 4 times one.

    A group that is stopped is worth nothing by then.
    """
    posteriors, troubles, place = _run(keys, problem, rows, config, progress, keeper, grouped=True)

    def member(i: int) -> Result:
        own, met = jax.tree.map(lambda x: x[i], (posteriors, troubles))
        return _result(own, met, place._replace(trace=[(done, fits[i]) for done, fits in place.trace]))

    return [member(i) for i in range(len(keys))]


def worth_now(key: PRNGKeyArray, problem: Any, rows: Rows, config: Config, place: Place, state: PyTree) -> Result:
    """What a run is worth at this place, as if its burn-in ended here: q(v) as it is, or the samples that its last
    phase would draw. The run itself is not touched."""
    method = METHODS[config.method]
    phases = method.phases(config)
    phase, last = phases[place.phase], phases[-1]
    usable = None if phase.usable is None else phase.usable(config, state, place.done)
    if usable is None:
        assert last.enter is not None
        usable = _compiled(last.enter, False)(config, problem, rows, state)
        drawing = jax.random.fold_in(key, len(phases) - 1)
        context = _context(last, False, config, drawing, problem, rows, usable)
        ends = jnp.asarray(0), jnp.asarray(last.iterations)
        draw = _compiled(last.advance, False, 2, _is_long(last, config, problem, rows))
        usable, _ = draw(config, drawing, context, rows, usable, *ends)
    return _finished(method, config, jax.random.fold_in(key, len(phases)), problem, usable, place)


def _result(posterior: Posterior, troubles: Troubles, place: Place) -> Result:
    trace = [(done, float(fit)) for done, fit in place.trace]
    return Result(posterior, trace, jax.device_get(troubles), place.seconds)


def _run(
    key: PRNGKeyArray,
    problem: Any,
    rows: Rows,
    config: Config,
    progress: Progress,
    keeper: Keeper | None,
    grouped: bool,
) -> tuple[Posterior, Troubles, Place]:
    """The posterior, the troubles, and the place the run began at with the whole trace."""
    method = METHODS[config.method]
    phases = method.phases(config)
    total = sum(phase.iterations for phase in phases)
    fold = jax.vmap(jax.random.fold_in, (0, None)) if grouped else jax.random.fold_in
    keys = [fold(key, i) for i in range(len(phases) + 2)]
    place, restored = Place(0, 0, []), None
    if keeper is not None:
        found = keeper.restore(
            lambda number, done: _is_chunk_end(phases, number, done),
            lambda number: _template(method, config, key, problem, rows, number, grouped),
        )
        place, restored = (place, None) if found is None else found
    began = time.monotonic() - place.seconds
    state = _compiled(method.start, grouped)(config, keys[-1], problem, rows) if restored is None else restored
    for number in range(place.phase, len(phases)):
        phase = phases[number]
        if phase.enter is not None and (restored is None or number > place.phase):
            state = _compiled(phase.enter, grouped)(config, problem, rows, state)
        context = _context(phase, grouped, config, keys[number], problem, rows, state)
        advance = _compiled(phase.advance, grouped, 2, _is_long(phase, config, problem, rows))
        before = sum(earlier.iterations for earlier in phases[:number])
        for done in range(place.done if number == place.phase else 0, phase.iterations, phase.chunk):
            end = min(done + phase.chunk, phase.iterations)
            state, fit = advance(config, keys[number], context, rows, state, jnp.asarray(done), jnp.asarray(end))
            place.trace.append((before + end, np.asarray(fit)))
            progress(phase.name, before + end, total, float(np.mean(place.trace[-1][1])))
            if keeper is not None:
                keeper.keep(Place(number, end, list(place.trace), time.monotonic() - began), state)
                if keeper.stop():
                    usable = None if grouped or phase.usable is None else phase.usable(config, state, end)
                    worth = None if usable is None else _finished(method, config, keys[-2], problem, usable, place)
                    raise Stopped(worth)
    posterior, troubles = _compiled(method.finish, grouped)(config, keys[-2], problem, state)
    return posterior, troubles, place


def _context(
    phase: Phase, grouped: bool, config: Config, key: PRNGKeyArray, problem: Any, rows: Rows, state: PyTree
) -> Any:
    """What does not change in the phase: the problem itself if it says nothing else."""
    return problem if phase.context is None else _compiled(phase.context, grouped)(config, key, problem, rows, state)


def _is_long(phase: Phase, config: Config, problem: Any, rows: Rows) -> bool:
    """Whether the phase is work for more than a few seconds of a CPU core, by a rough count of its multiplications."""
    batch = config.batch_size or rows.X.shape[-2]
    unknowns = sum(leaf.size for leaf in jax.tree.leaves(problem))
    return phase.iterations * config.num_chains * batch * unknowns > LONG_WORK


def _is_chunk_end(phases: tuple[Phase, ...], number: int, done: int) -> bool:
    if not 0 <= number < len(phases):
        return False
    phase = phases[number]
    return 0 < done <= phase.iterations and (done % phase.chunk == 0 or done == phase.iterations)


def _template(
    method: Method, config: Config, key: PRNGKeyArray, problem: Any, rows: Rows, number: int, grouped: bool
) -> PyTree:
    """Shapes and types of the state in a phase, nothing computed."""

    def state_in_phase(key: PRNGKeyArray, problem: Any, rows: Rows) -> PyTree:
        state = method.start(config, key, problem, rows)
        for i, phase in enumerate(method.phases(config)[: number + 1]):
            if phase.enter is not None:
                state = phase.enter(config, problem, rows, state)
            context = problem if phase.context is None else phase.context(config, key, problem, rows, state)
            if i < number or phase.enter is None:  # without ``enter`` a phase may make its state as it advances
                state, _ = phase.advance(config, key, context, rows, state, jnp.asarray(0), jnp.asarray(1))
        return state

    return jax.eval_shape(jax.vmap(state_in_phase) if grouped else state_in_phase, key, problem, rows)


def _finished(method: Method, config: Config, key: PRNGKeyArray, problem: Any, state: PyTree, place: Place) -> Result:
    """What a run is worth that was stopped early."""
    posterior, troubles = _compiled(method.finish, False)(config, key, problem, state)
    return _result(posterior, troubles, place)


@functools.cache
def _compiled(function: Callable, grouped: bool, shared: int = 0, long_run: bool = False) -> Callable:
    """``function(config, *arrays)`` compiled, config static; grouped: over the leading axis of all arrays but the
    last ``shared`` ones."""

    @functools.wraps(function)
    def call(config: Config, *arrays: Any) -> Any:
        if not grouped:
            return function(config, *arrays)
        axes = (0,) * (len(arrays) - shared) + (None,) * shared
        return jax.vmap(functools.partial(function, config), axes)(*arrays)

    return quick_jit(call, static_argnums=(0,), long_run=long_run)
