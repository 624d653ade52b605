"""Sampling: burn-in without adapting, at fixed theta, its factors and projections computed once."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference import sghmc
from deepwell.inference.burn_in import move
from deepwell.inference.compiling import quick_jit
from deepwell.inference.problem import Config, Flat, Problem, density_of_v
from deepwell.model.deep_gp import Batch, DeepGP, Outputs
from deepwell.model.layers import Projection
from deepwell.model.linalg import InverseFactor

CACHED_PROJECTIONS = 2**27
"""Numbers of the first layer's projections of all training rows that may be kept."""

Samples = Float[Array, "c s k"]


class Frozen(NamedTuple):
    """What does not change while sampling: theta, its factors, the preconditioners, and the rows as the first
    layer sees them (when they are small enough to keep)."""

    model: DeepGP
    factors: tuple[InverseFactor, ...]
    moments: sghmc.Moments
    projected: Projection | None


@quick_jit
def freeze(problem: Problem, theta: Flat, rows: Rows, moments: sghmc.Moments) -> Frozen:
    """Factor K_ZZ and project the training inputs on the first layer, once."""
    model = problem.model(theta)
    factors = model.factors()
    keep = rows.X.shape[0] * model.layers[0].num_inducing <= CACHED_PROJECTIONS
    return Frozen(model, factors, moments, model.layers[0].project(factors[0], rows.X) if keep else None)


@partial(quick_jit, static_argnums=(0,))
def draw_samples(
    config: Config,
    key: PRNGKeyArray,
    frozen: Frozen,
    rows: Rows,
    chains: sghmc.Chain,
    samples: Samples,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[sghmc.Chain, Samples, Float[Array, ""]]:
    """Samples ``first`` up to ``last``, every one ``spacing`` steps of each chain after the one before.

    Iterations are numbered on from burn-in, so one key serves both.
    """

    def draw_batch(key: PRNGKeyArray) -> Batch:
        inputs = rows.X if frozen.projected is None else frozen.projected
        (inputs, y), weight = minibatch(key, (inputs, rows.y), rows.num_data, config.batch_size)
        if frozen.projected is None:
            inputs = frozen.model.layers[0].project(frozen.factors[0], inputs)
        return Batch(inputs, y, weight)

    def iterate(i: Array, carry: tuple[sghmc.Chain, Array]) -> tuple[sghmc.Chain, Array]:
        chains, total = carry
        batch_key, step_key = jax.random.split(jax.random.fold_in(key, config.burn_in + i))
        density = density_of_v(config, frozen.model, frozen.factors, draw_batch(batch_key), rows.num_data)
        keys = jax.random.split(step_key, (config.num_chains, 2))
        chains, _, fits = jax.vmap(lambda k, c, m: move(k, c, m, density, config.dynamics, rows.num_data))(
            keys, chains, frozen.moments
        )
        return chains, total + jnp.mean(fits)

    def body(s: Array, carry: tuple[sghmc.Chain, Array, Array]) -> tuple[sghmc.Chain, Array, Array]:
        chains, samples, total = carry
        chains, total = lax.fori_loop(s * config.spacing, (s + 1) * config.spacing, iterate, (chains, total))
        return chains, samples.at[:, s].set(chains.position), total

    zero = jnp.zeros((), rows.X.dtype)
    chains, samples, total = lax.fori_loop(first, last, body, (chains, samples, zero))
    return chains, samples, total / ((last - first) * config.spacing)


@quick_jit
def as_outputs(model: DeepGP, samples: Samples) -> Outputs:
    """The vectors of each chain and draw as inducing outputs of the layers."""
    _, unravel = ravel_pytree(model.zero_outputs())
    return jax.vmap(jax.vmap(unravel))(samples)
