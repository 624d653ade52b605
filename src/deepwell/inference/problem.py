"""Where a model meets inference: theta and v as vectors, the density of v on a minibatch, and how problems are made."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.errors import InputError
from deepwell.inference.config import Config
from deepwell.inference.mcem import Density, LogJoint
from deepwell.inference.posterior import DeepGPStart, Posterior
from deepwell.model.deep_gp import Batch, DeepGP, Outputs, log_likelihood, log_prior_outputs, split_parameters
from deepwell.model.gaussian_outputs import Belief, coupled, decoupled, initial_belief
from deepwell.model.initial import Architecture, initial_model, variance_inputs
from deepwell.model.layers import Prepared
from deepwell.model.likelihoods import Likelihood
from deepwell.model.net import Net, initial_net
from deepwell.model.priors import log_prior
from deepwell.numerics.packing import Flat, Packing


class Problem(NamedTuple):
    """A deep GP to learn: where theta starts, the constants, where v starts, and q(v) if a method needs it.

    ``outputs`` has one v a chain as leading axis. Inducing inputs have their prior around where they start. Inference
    moves theta as one vector.
    """

    theta: DeepGP
    constants: DeepGP
    outputs: Outputs
    belief: Belief | None = None

    @property
    def initial(self) -> DeepGP:
        return eqx.combine(self.theta, self.constants)

    def model(self, theta: Flat) -> DeepGP:
        return eqx.combine(Packing(self.theta).unpack(theta), self.constants)

    def first_positions(self, num_chains: int) -> Float[Array, "c k"]:
        """Where the chains start, v as a vector; chains share starts if there are more chains than starts."""
        starts = jax.vmap(Packing.pack)(self.outputs)
        return starts[jnp.arange(num_chains) % len(starts)]


class NetProblem(NamedTuple):
    """A Bayesian neural net to learn: where each chain's weights start."""

    nets: Net

    @property
    def template(self) -> Net:
        return jax.tree.map(lambda x: x[0], self.nets)


class Blueprint(NamedTuple):
    """What a problem is made of: standardised inputs, the shape asked for, and a start if another fit gives one."""

    rng: np.random.Generator
    X: np.ndarray
    num_targets: int
    likelihood: Likelihood
    architecture: Architecture
    model: DeepGP | None
    """The user's own, in the place of one made from the architecture."""
    fixed: tuple[str, ...]
    num_variance_inducing: tuple[int, ...]
    hidden_units: tuple[int, ...]
    num_chains: int
    dsvi_start: bool
    inference: str
    init: Posterior | None
    init_inference: str
    """Names of the method that will solve the problem, and of the one that found ``init``."""


ProblemMaker = Callable[[Blueprint], Any]


def deep_gp_problem(b: Blueprint) -> Problem:
    """theta and v from scratch or from another fit; q(v) as well if dsvi goes before."""
    start = _start(b)
    problem = _problem(b, start)
    return problem._replace(belief=_coupled(b, start)) if b.dsvi_start else problem


def variational_problem(b: Blueprint) -> Problem:
    """theta and q(v), with one set of inducing inputs a layer."""
    start = _start(b)
    return _problem(b, start)._replace(belief=_coupled(b, start))


def decoupled_problem(b: Blueprint) -> Problem:
    """theta and q(v), whose variances have inducing inputs of their own."""
    start = _start(b)
    if b.init is None:
        belief = initial_belief(start.model, variance_inputs(b.rng, b.X, start.model, b.num_variance_inducing))
    else:
        belief = decoupled(start.model, start.belief)
    return _problem(b, start)._replace(belief=belief)


def net_problem(b: Blueprint) -> NetProblem:
    """The weights of each chain's net, from their prior or from another fit of a net."""
    if b.init is not None:
        nets = b.init.start()
        if not isinstance(nets, Net):
            raise InputError(f"{b.inference} cannot start from a model fitted by {b.init_inference}")
        return NetProblem(nets)
    keys = jax.random.split(jax.random.key(int(b.rng.integers(2**32))), b.num_chains)
    sizes = b.X.shape[1], b.num_targets, b.hidden_units, b.likelihood
    return NetProblem(jax.vmap(lambda key: initial_net(key, *sizes))(keys))


def _start(b: Blueprint) -> DeepGPStart:
    if b.init is not None:
        start = b.init.start()
        if not isinstance(start, DeepGPStart):
            raise InputError(f"a deep GP cannot start from a model fitted by {b.init_inference}")
        return start
    model = b.model or initial_model(b.rng, b.X, b.num_targets, b.likelihood, b.architecture)
    return DeepGPStart(model, jax.tree.map(lambda v: v[None], model.zero_outputs()), ())


def _problem(b: Blueprint, start: DeepGPStart) -> Problem:
    return Problem(*split_parameters(start.model, b.fixed), start.outputs)


def _coupled(b: Blueprint, start: DeepGPStart) -> Belief:
    if b.init is None:
        return initial_belief(start.model, (None,) * start.model.depth)
    return coupled(start.model, start.belief)


def log_joint(config: Config, problem: Problem, rows: Rows) -> LogJoint:
    """log p(y, v | theta) / N on a minibatch; the watched value is the mean log-likelihood of its rows."""

    def prepare(theta: Flat) -> Prepared:
        return problem.model(theta).prepare()

    def batch(key: PRNGKeyArray, theta: Flat, prepared: Prepared) -> Batch:
        (X, y), weight = minibatch(key, (rows.X, rows.y), rows.num_data, config.batch_size)
        return Batch(problem.model(theta).layers[0].project(prepared.layers[0], X), y, weight)

    def density(theta: Flat, prepared: Prepared, batch: Batch) -> Density:
        model = problem.model(theta)
        prior = 0.0 if config.priors is None else log_prior(model, problem.initial, config.priors)
        return density_of_v(config, model, prepared, batch, rows.num_data, prior)

    return LogJoint(prepare, batch, density, lambda prepared: jitter_grew(prepared.retries))


def jitter_grew(retries: Int[Array, " layers"]) -> Int[Array, " layers"]:
    """1 for every layer whose factorisation failed at the usual jitter."""
    return (retries > 0).astype(jnp.int32)


def density_of_v(
    config: Config,
    model: DeepGP,
    prepared: Prepared,
    batch: Batch,
    num_data: Int[Array, ""],
    prior: Array | float = 0.0,
) -> Density:
    """(key, v) -> (mean log-likelihood of the batch + (log p(v) + log prior of theta) / N, mean log-likelihood)."""
    outputs = Packing(model.zero_outputs())

    def density(key: PRNGKeyArray, flat: Flat) -> tuple[Array, Array]:
        v = outputs.unpack(flat)
        fit = log_likelihood(key, model, prepared, v, batch, config.objective, config.inner_samples)
        return fit + (log_prior_outputs(v) + prior) / num_data.astype(fit.dtype), fit

    return density
