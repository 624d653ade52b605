"""Burn-in: Moving Window MCEM moves theta while SGHMC moves v and tunes itself."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows
from deepwell.inference import mcem, sghmc
from deepwell.inference.compiling import quick_jit
from deepwell.inference.problem import Config, Flat, Problem, target


class Tuned(NamedTuple):
    """A chain in burn-in: its state and the moments that tune it."""

    chain: sghmc.Chain
    moments: sghmc.Moments


def optimiser(config: Config) -> Any:
    """Adam at a constant rate, as in the paper."""
    import optax

    return optax.adam(config.learning_rate)


def move(
    keys: PRNGKeyArray,
    chain: sghmc.Chain,
    moments: sghmc.Moments,
    density: mcem.Density,
    dynamics: sghmc.Dynamics,
    num_data: Int[Array, ""],
) -> tuple[sghmc.Chain, Flat, Array]:
    """One SGHMC step on the potential U/N = -log p(y, v)/N at temperature 1/N.

    Returns the chain, the gradient it followed and the watched mean log-likelihood.
    """

    def potential(v: Flat) -> tuple[Array, Array]:
        value, watched = density(keys[0], v)
        return -value, watched

    gradient, fit = jax.grad(potential, has_aux=True)(chain.position)
    moved = sghmc.step(keys[1], chain, moments, gradient, dynamics, 1.0 / num_data.astype(fit.dtype))
    return moved, gradient, fit


def tuned_sampler(config: Config, num_data: Int[Array, ""], iteration: Int[Array, ""]) -> mcem.Sampler:
    """SGHMC on all chains at once, each adapting its own preconditioner.

    The floor under its window grows with the iteration, so that the start of the moments is forgotten.
    """
    floor = jnp.minimum(iteration, config.shortest_window).astype(float)

    def one(keys: PRNGKeyArray, tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        chain, gradient, fit = move(keys, tuned.chain, tuned.moments, density, config.dynamics, num_data)
        adapted = sghmc.adapt(tuned.moments, gradient, floor)
        return Tuned(chain, sghmc.select(sghmc.all_finite(adapted), adapted, tuned.moments)), fit

    def step(key: PRNGKeyArray, tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        keys = jax.random.split(key, (config.num_chains, 2))
        moved, fits = jax.vmap(lambda k, t: one(k, t, density))(keys, tuned)
        return moved, jnp.mean(fits)

    return mcem.Sampler(step, lambda tuned: tuned.chain.position)


@partial(quick_jit, static_argnums=(0,))
def start(config: Config, problem: Problem) -> mcem.State:
    """All chains at v = 0, the window empty."""
    zero, _ = ravel_pytree(problem.initial.zero_outputs())
    zeros = jnp.zeros((config.num_chains, zero.size), zero.dtype)
    chains = Tuned(jax.vmap(sghmc.init)(zeros), jax.vmap(sghmc.init_moments)(zeros))
    theta, _ = ravel_pytree(problem.theta)
    return mcem.init(theta, chains, zeros, optimiser(config), config.window_size)


@partial(quick_jit, static_argnums=(0,))
def burn_in(
    config: Config,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: mcem.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[mcem.State, Float[Array, ""]]:
    """Iterations ``first`` up to ``last``, each with the key of its number, and their mean log-likelihood."""
    aim, adam = target(config, problem, rows), optimiser(config)

    def body(i: Array, carry: tuple[mcem.State, Array]) -> tuple[mcem.State, Array]:
        state, total = carry
        sampler = tuned_sampler(config, rows.num_data, i)
        state, fit = mcem.step(jax.random.fold_in(key, i), state, aim, sampler, adam)
        return state, total + fit

    state, total = lax.fori_loop(first, last, body, (state, jnp.zeros((), rows.X.dtype)))
    return state, total / (last - first)
