"""What every inference method is: a start, phases made of compiled chunks, and a posterior at the end.

All functions are pure and take a static ``Config`` first, so that one driver (``run``) compiles them, reports
progress between chunks, and can run many problems of one shape at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Int

from deepwell.inference.posterior import Posterior

CHUNK = 250
"""Iterations of a chunk: the state is looked at between chunks."""


class Phase(NamedTuple):
    """Iterations of one kind.

    enter(config, problem, rows, state) -> state: what the phase before left becomes this phase's state;
    context(config, key, problem, rows, state) -> what does not change in the phase, recomputable from its state;
    advance(config, key, context, rows, state, first, last) -> (state, mean log-likelihood of a training row);
    usable(config, state, done) -> a state that ``finish`` can take after so many iterations, or None.
    """

    name: str
    iterations: int
    advance: Callable[..., tuple[Any, Array]]
    enter: Callable[..., Any] | None = None
    context: Callable[..., Any] | None = None  # None: the problem itself
    usable: Callable[..., Any] | None = None  # None: never before the phase has ended
    chunk: int = CHUNK


def sampling_phase(config: Any, advance: Callable, enter: Callable, context: Callable | None = None) -> Phase:
    """Samples at whole multiples of the spacing, so chunks are such multiples too."""
    chunk = max(1, CHUNK // config.spacing) * config.spacing
    iterations = config.num_samples * config.spacing
    return Phase("sampling", iterations, advance, enter, context, samples_so_far, chunk)


def samples_so_far(config: Any, state: Any, done: int) -> Any:
    """The state of a sampling phase with the samples drawn so far alone, or None if there is none yet."""
    count = done // config.spacing
    return state._replace(samples=state.samples[:, :count]) if count else None


class Troubles(NamedTuple):
    """Moves and updates refused because they left the finite numbers; tenfold growths of the jitter at the end, and for
    each layer in how many iterations it had to grow (none if the method does not count them)."""

    refused_moves: Int[Array, ""]
    refused_updates: Int[Array, ""]
    jitter_retries: Int[Array, ""]
    jitter_grew: Int[Array, " layers"]


class Method(NamedTuple):
    """start(config, key, problem, rows) -> state, phases(config), finish(config, key, problem, state) -> result."""

    start: Callable[..., Any]
    phases: Callable[[Any], tuple[Phase, ...]]
    finish: Callable[..., tuple[Posterior, Troubles]]
