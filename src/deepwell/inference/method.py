"""What an inference method is: a start, phases made of compiled chunks, a finish, and traits.

A method is an immutable record of pure functions. Each takes a static ``Config`` first, so that one driver compiles
them, reports progress between chunks, and runs many problems of one shape as one program. The rest of the package asks
a method for its ``Traits``, never for its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows
from deepwell.inference.config import Config, Rates
from deepwell.inference.posterior import Posterior
from deepwell.inference.problem import ProblemMaker
from deepwell.model.deep_gp import Objective

CHUNK = 250
"""Iterations of a chunk: the state is looked at between chunks."""

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)
Last = TypeVar("Last")


@runtime_checkable
class Start(Protocol[S_co]):
    """The state of the first phase before its first iteration."""

    def __call__(self, config: Config, key: PRNGKeyArray, problem: Any, rows: Rows, /) -> S_co: ...


@runtime_checkable
class Enter(Protocol[S_co]):
    """The state that the phase before has left becomes the state of this phase."""

    def __call__(self, config: Config, problem: Any, rows: Rows, state: Any, /) -> S_co: ...


@runtime_checkable
class MakeContext(Protocol[S_contra]):
    """What does not change in the phase. It can be computed again from any of its states."""

    def __call__(self, config: Config, key: PRNGKeyArray, problem: Any, rows: Rows, state: S_contra, /) -> Any: ...


@runtime_checkable
class Advance(Protocol[S]):
    """Iterations ``first`` up to ``last`` of a phase; the new state and the mean log-likelihood of a training row."""

    def __call__(
        self,
        config: Config,
        rates: Rates,
        key: PRNGKeyArray,
        context: Any,
        rows: Rows,
        state: S,
        first: Int[Array, ""],
        last: Int[Array, ""],
        /,
    ) -> tuple[S, Float[Array, ""]]: ...


@runtime_checkable
class Usable(Protocol[S_contra]):
    """A state that ``finish`` can take after so many iterations of the phase, or None."""

    def __call__(self, config: Config, state: S_contra, done: int, /) -> Any: ...


class NumericalIssues(NamedTuple):
    """Moves and updates refused because they left the finite numbers; tenfold growths of the jitter at the end; and for
    each layer in how many iterations the jitter had to grow (empty if the method does not count them)."""

    refused_moves: Int[Array, ""]
    refused_updates: Int[Array, ""]
    jitter_retries: Int[Array, ""]
    jitter_grew: Int[Array, " layers"]


@runtime_checkable
class Finish(Protocol[S_contra]):
    """The posterior that the state of the last phase holds."""

    def __call__(
        self, config: Config, key: PRNGKeyArray, problem: Any, state: S_contra, /
    ) -> tuple[Posterior, NumericalIssues]: ...


@dataclass(frozen=True)
class Phase(Generic[S]):
    """Iterations of one kind, in chunks."""

    name: str
    iterations: int
    advance: Advance[S]
    enter: Enter[S] | None = None
    """None: the state of the phase before is the state of this one."""
    context: MakeContext[S] | None = None
    """None: the problem itself."""
    usable: Usable[S] | None = None
    """None: never before the phase has ended."""
    chunk: int = CHUNK


def samples_so_far(config: Config, state: Any, done: int) -> Any:
    """The state of a sampling phase with the samples drawn so far alone, or None if there is none yet."""
    count = done // config.spacing
    return state._replace(samples=state.samples[:, :count]) if count else None


def sampling_phase(
    config: Config, advance: Advance[S], enter: Enter[S], context: MakeContext[S] | None = None
) -> Phase[S]:
    """Samples at whole multiples of the spacing, so chunks are such multiples too."""
    chunk = max(1, CHUNK // config.spacing) * config.spacing
    iterations = config.num_samples * config.spacing
    return Phase("sampling", iterations, advance, enter, context, samples_so_far, chunk)


@dataclass(frozen=True)
class Traits:
    """What the rest of the package needs to know of a method."""

    shares_theta: bool = False
    """All chains share one theta, found by MCEM of some kind. Such a method can have a ``dsvi_start`` and control
    variates."""
    samples_theta: bool = False
    """Hyperparameters are sampled, so they always have priors."""
    variational: bool = False
    """The posterior is q(v): there are no chains."""
    takes_minibatches: bool = True
    needs_smooth_likelihood: bool = False
    """The sampler follows the gradient of log p(y | f) itself."""
    objective: Objective = "predictive"
    """Unless the user or the likelihood says otherwise."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings that replace the preset's."""
    imposed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that nobody can choose: the method is what it is by them."""
    inducing_factor: int = 1
    """So many times the preset's inducing points."""
    refused_move: str = (
        "sampler steps were refused because they left the finite numbers, each halving the step size of its chain"
    )
    """What a refused move is, after its number."""
    requires: str | None = None
    """A package that need not be installed otherwise."""


@dataclass(frozen=True)
class Method(Generic[Last]):
    """An inference method whose last phase has a state of type ``Last``. ``register`` makes it known by its name."""

    name: str
    start: Start[Any]
    phases: "PhasesOf"
    finish: Finish[Last]
    problem: ProblemMaker
    """The problem that the method solves, of a table and a start."""
    traits: Traits = Traits()


@runtime_checkable
class PhasesOf(Protocol):
    """The phases of a run, one after the other."""

    def __call__(self, config: Config, /) -> tuple[Phase[Any], ...]: ...
