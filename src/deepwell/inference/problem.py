"""Where the deep GP meets inference: settings of a run, theta and v as vectors, the density of v on a minibatch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference.mcem import Density, Target
from deepwell.inference.sghmc import Dynamics
from deepwell.model.deep_gp import Batch, DeepGP, Objective, Outputs, log_likelihood, log_prior_outputs
from deepwell.model.gaussian_outputs import Belief
from deepwell.model.net import Net
from deepwell.model.priors import Priors, log_prior
from deepwell.numerics.linalg import InverseFactor

Flat = Float[Array, " k"]
"""A pytree ravelled into one vector: one fused update instead of one a leaf compiles much faster."""


class Config(NamedTuple):
    """Everything that shapes the compiled programs; hashable, so equal settings compile once."""

    method: str
    objective: Objective
    inner_samples: int
    batch_size: int | None  # None: all rows
    dynamics: Dynamics
    sampling_dynamics: Dynamics  # once theta and the preconditioner are frozen
    control_variates: bool  # while sampling
    shortest_window: int  # floor under the window of the preconditioner; 0: as published
    burn_in: int
    window_size: int
    learning_rate: float
    priors: Priors | None
    num_chains: int
    num_samples: int  # of each chain
    spacing: int
    dsvi_start: int  # iterations of dsvi before burn-in
    e_steps: int  # of plain MCEM: sampler steps of an E-step,
    e_samples: int  # samples kept of them,
    m_steps: int  # and at most so many optimiser steps of an M-step


def adam(config: Config) -> Any:
    """The optimiser of hyperparameters: Adam at a constant rate, as in the paper."""
    import optax

    return optax.adam(config.learning_rate)


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
        _, unravel = ravel_pytree(self.theta)
        return eqx.combine(unravel(theta), self.constants)

    def first_positions(self, num_chains: int) -> Float[Array, "c k"]:
        """Where the chains start, v as a vector; chains share starts if there are more chains than starts."""
        starts = jax.vmap(lambda v: ravel_pytree(v)[0])(self.outputs)
        return starts[jnp.arange(num_chains) % len(starts)]


class NetProblem(NamedTuple):
    """A Bayesian neural net to learn: where each chain's weights start."""

    nets: Net

    @property
    def template(self) -> Net:
        return jax.tree.map(lambda x: x[0], self.nets)


def target(config: Config, problem: Problem, rows: Rows) -> Target:
    """log p(y, v | theta) / N on a minibatch; the watched value is the mean log-likelihood of its rows."""

    def prepare(theta: Flat) -> tuple[InverseFactor, ...]:
        return problem.model(theta).factors()

    def batch(key: PRNGKeyArray, theta: Flat, factors: tuple[InverseFactor, ...]) -> Batch:
        (X, y), weight = minibatch(key, (rows.X, rows.y), rows.num_data, config.batch_size)
        return Batch(problem.model(theta).layers[0].project(factors[0], X), y, weight)

    def density(theta: Flat, factors: tuple[InverseFactor, ...], batch: Batch) -> Density:
        model = problem.model(theta)
        prior = 0.0 if config.priors is None else log_prior(model, problem.initial, config.priors)
        return density_of_v(config, model, factors, batch, rows.num_data, prior)

    return Target(prepare, batch, density, jitter_grew)


def jitter_grew(factors: Sequence[InverseFactor]) -> Int[Array, " layers"]:
    """1 for every layer whose factorisation failed at the usual jitter."""
    return jnp.stack([(factor.retries > 0).astype(jnp.int32) for factor in factors])


def most_retries(factors: Sequence[InverseFactor]) -> Int[Array, ""]:
    """How often the jitter had to grow tenfold in the worst of these factorisations."""
    return jnp.max(jnp.stack([factor.retries for factor in factors]))


def density_of_v(
    config: Config,
    model: DeepGP,
    factors: tuple[InverseFactor, ...],
    batch: Batch,
    num_data: Int[Array, ""],
    prior: Array | float = 0.0,
) -> Density:
    """(key, v) -> (mean log-likelihood of the batch + (log p(v) + log prior of theta) / N, mean log-likelihood)."""
    _, unravel = ravel_pytree(model.zero_outputs())

    def density(key: PRNGKeyArray, flat: Flat) -> tuple[Array, Array]:
        v = unravel(flat)
        fit = log_likelihood(key, model, factors, v, batch, config.objective, config.inner_samples)
        return fit + (log_prior_outputs(v) + prior) / num_data.astype(fit.dtype), fit

    return density
