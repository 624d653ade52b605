"""The driver: any method, its phases in compiled chunks; many problems of one shape as one program if asked.

Between chunks a run can be kept (a checkpoint), stopped, and resumed bit for bit: a chunk is a pure function of the
state, keys are folded from the iteration's number, and chunks have fixed ends.
"""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from deepwell.data.rows import Rows
from deepwell.inference.config import Config, Rates
from deepwell.inference.keys import RunKeys, run_keys
from deepwell.inference.method import Method, NumericalIssues, Phase
from deepwell.inference.posterior import Posterior
from deepwell.inference.registry import method_named
from deepwell.numerics.jit import quick_jit

Progress = Callable[[str, int, int, float], None]
"""(phase, iterations done, iterations in all, mean training log-likelihood of the last chunk)."""

Trace = list[tuple[int, np.ndarray]]

LONG_WORK = 3e9
"""Iterations times rows times unknowns from which on a program's speed outweighs its compilation."""


class Run(NamedTuple):
    """What is to be run: a problem with its rows, key and settings, or several stacked along the leading axes."""

    key: PRNGKeyArray
    problem: Any
    rows: Rows
    config: Config
    rates: Rates

    @property
    def method(self) -> Method[Any]:
        return method_named(self.config.method)

    @property
    def phases(self) -> tuple[Phase[Any], ...]:
        return self.method.phases(self.config)

    @property
    def keys(self) -> RunKeys:
        return run_keys(self.key, len(self.phases))

    @property
    def is_group(self) -> bool:
        return self.key.ndim > 0


class Position(NamedTuple):
    """How far a run has come: the phase, its iterations done, the trace so far, and the seconds it has taken."""

    phase: int
    done: int
    trace: Trace
    seconds: float = 0.0


class Chunk(NamedTuple):
    """What is known after a chunk of a phase: the phase's number, its iterations done, the state, and the fit."""

    number: int
    done: int
    state: PyTree
    fit: Any


Call = Callable[..., Any]
"""(function, axes, config, *arrays) -> its result. ``axes`` says which arrays a group stacks: 0, or None if shared."""


def chunks(
    run: Run, call: Call, phase: int = 0, done: int = 0, state: PyTree = None, whole: bool = False
) -> Iterator[Chunk]:
    """Every chunk of a run, one after the other: the one place that interprets phases.

    It begins after so many iterations of a phase, whose state it is given, or with a phase that it enters from the
    state of the phase before (``done`` 0), or at the start. ``whole``: a phase is one chunk.
    """
    config, rates, problem, rows = run.config, run.rates, run.problem, run.rows
    phases, keys = run.phases, run.keys
    if phase == 0 and done == 0:
        state = call(run.method.start, (0, 0, 0), config, keys.start, problem, rows)
    for number in range(phase, len(phases)):
        now, key = phases[number], keys.phases[number]
        begun = done if number == phase else 0
        if now.enter is not None and begun == 0:
            state = call(now.enter, (0, 0, 0), config, problem, rows, state)
        context = problem
        if now.context is not None:
            context = call(now.context, (0, 0, 0, 0), config, key, problem, rows, state)
        length = now.iterations if whole else now.chunk
        for first in range(begun, now.iterations, length):
            last = min(first + length, now.iterations)
            arrays = rates, key, context, rows, state, jnp.asarray(first), jnp.asarray(last)
            state, fit = call(now.advance, (None, 0, 0, 0, 0, None, None), config, *arrays)
            yield Chunk(number, last, state, fit)


def call_plainly(function: Callable[..., Any], axes: tuple[int | None, ...], config: Config, *arrays: Any) -> Any:
    """The function itself, for use inside other compiled programs."""
    return function(config, *arrays)


def call_compiled(run: Run) -> Call:
    """Compiled functions, over the leading axes if the run is a group."""

    def call(function: Callable[..., Any], axes: tuple[int | None, ...], config: Config, *arrays: Any) -> Any:
        return _compiled(function, axes if run.is_group else None, _is_long(run, function))(config, *arrays)

    return call


@functools.cache
def _compiled(
    function: Callable[..., Any], axes: tuple[int | None, ...] | None, long_run: bool = False
) -> Callable[..., Any]:
    """``function(config, *arrays)`` compiled, config static; over the leading axis of arrays if ``axes`` are given."""

    @functools.wraps(function)
    def call(config: Config, *arrays: Any) -> Any:
        if axes is None:
            return function(config, *arrays)
        return jax.vmap(functools.partial(function, config), axes)(*arrays)

    return quick_jit(call, static_argnums=(0,), long_run=long_run)


def _is_long(run: Run, function: Callable[..., Any]) -> bool:
    """Whether this is a phase of work for more than a few seconds of a CPU core, by a rough count of products."""
    batch = run.config.batch_size or run.rows.X.shape[-2]
    unknowns = sum(leaf.size for leaf in jax.tree.leaves(run.problem))
    iterations = max((phase.iterations for phase in run.phases if phase.advance is function), default=0)
    return iterations * run.config.num_chains * batch * unknowns > LONG_WORK


class Hooks(NamedTuple):
    """What happens to a run between chunks.

    restore(is_end, state_like) gives (position, state) to resume from, or None; is_end(phase, done) says whether a
    position is the end of a chunk, and state_like(phase) what the state looks like in a phase.
    """

    restore: "Restore"
    keep: Callable[[Position, PyTree], None]
    """Called after every chunk."""
    stop: Callable[[], bool]
    """Whether to stop here."""


IsChunkEnd = Callable[[int, int], bool]
StateLike = Callable[[int], PyTree]
Restore = Callable[[IsChunkEnd, StateLike], tuple[Position, PyTree] | None]
NO_HOOKS = Hooks(lambda is_end, state_like: None, lambda position, state: None, lambda: False)


class Result(NamedTuple):
    """The posterior, (iteration, mean training log-likelihood) after every chunk, the numerical issues, and the seconds
    before the checkpoint from which the run was resumed."""

    posterior: Posterior
    trace: list[tuple[int, float]]
    issues: NumericalIssues
    earlier_seconds: float


class Stopped(Exception):  # noqa: N818
    """The run was stopped between chunks; ``result`` is what it was worth by then, if anything."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("stopped")
        self.result = result


def run_one(run: Run, progress: Progress, hooks: Hooks = NO_HOOKS) -> Result:
    """One problem."""
    return _result(*_run(run, progress, hooks))


def run_group(run: Run, progress: Progress, hooks: Hooks = NO_HOOKS) -> list[Result]:
    """Problems stacked along the leading axis of every array, as one program: on a GPU ten cost 3 to 4 times one.

    A group that is stopped has no result yet.
    """
    posteriors, issues, position = _run(run, progress, hooks)

    def member(i: int) -> Result:
        own, met = jax.tree.map(lambda x: x[i], (posteriors, issues))
        return _result(own, met, position._replace(trace=[(done, fits[i]) for done, fits in position.trace]))

    return [member(i) for i in range(len(run.key))]


def _run(run: Run, progress: Progress, hooks: Hooks) -> tuple[Posterior, NumericalIssues, Position]:
    """The posterior, the issues, and the position the run began at with the whole trace."""
    phases, call = run.phases, call_compiled(run)
    total = sum(phase.iterations for phase in phases)
    restored = hooks.restore(functools.partial(is_chunk_end, phases), functools.partial(state_in_phase, run))
    begun, state = (Position(0, 0, []), None) if restored is None else restored
    clock = time.monotonic() - begun.seconds
    for chunk in chunks(run, call, begun.phase, begun.done, state):
        phase, state = phases[chunk.number], chunk.state
        iterations = sum(earlier.iterations for earlier in phases[: chunk.number]) + chunk.done
        begun.trace.append((iterations, np.asarray(chunk.fit)))
        progress(phase.name, iterations, total, float(np.mean(chunk.fit)))
        now = Position(chunk.number, chunk.done, list(begun.trace), time.monotonic() - clock)
        hooks.keep(now, state)
        if hooks.stop():
            usable = None if run.is_group or phase.usable is None else phase.usable(run.config, state, chunk.done)
            raise Stopped(None if usable is None else _result(*_finish(run, usable), begun))
    return *_finish(run, state), begun


def snapshot(run: Run, position: Position, state: PyTree) -> Result:
    """The result that the run would have if its burn-in ended here: q(v) as it is, or the samples that its last phase
    would draw. The run itself is not touched."""
    phase, last = run.phases[position.phase], len(run.phases) - 1
    usable = None if phase.usable is None else phase.usable(run.config, state, position.done)
    if usable is None:
        (usable,) = (chunk.state for chunk in chunks(run, call_compiled(run), last, 0, state, whole=True))
    return _result(*_finish(run, usable), position)


def has_snapshots(phases: tuple[Phase[Any], ...]) -> bool:
    """Whether a result can be made at every position: its state is usable, or the last phase can be entered from it."""
    *earlier, last = phases
    return all(phase.usable is not None for phase in earlier) or (len(earlier) == 1 and last.enter is not None)


def state_in_phase(run: Run, number: int) -> PyTree:
    """Shapes and types of the state in a phase, nothing computed."""

    def state(key: PRNGKeyArray, problem: Any, rows: Rows) -> PyTree:
        alone = run._replace(key=key, problem=problem, rows=rows)
        return next(chunk.state for chunk in chunks(alone, call_plainly, whole=True) if chunk.number == number)

    return jax.eval_shape(jax.vmap(state) if run.is_group else state, run.key, run.problem, run.rows)


def is_chunk_end(phases: tuple[Phase[Any], ...], number: int, done: int) -> bool:
    """Whether a chunk of phase ``number`` ends after so many iterations."""
    if not 0 <= number < len(phases):
        return False
    phase = phases[number]
    return 0 < done <= phase.iterations and (done % phase.chunk == 0 or done == phase.iterations)


def _finish(run: Run, state: PyTree) -> tuple[Posterior, NumericalIssues]:
    return call_compiled(run)(run.method.finish, (0, 0, 0), run.config, run.keys.finish, run.problem, state)


def _result(posterior: Posterior, issues: NumericalIssues, position: Position) -> Result:
    trace = [(done, float(fit)) for done, fit in position.trace]
    return Result(posterior, trace, jax.device_get(issues), position.seconds)
