"""Chains of SGHMC on a potential U/N = -log p/N at temperature 1/N: tuned while they burn in, then collected."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from deepwell.inference import mcem, sghmc
from deepwell.inference.config import Config, Rates, rate_at
from deepwell.numerics.packing import Flat
from deepwell.numerics.trees import keep_finite

Samples = Float[Array, "c s k"]


class Anchor(NamedTuple):
    """A control variate: a point near the chain, and the gradient of the potential there, over all rows."""

    position: Flat
    gradient: Flat


class Tuned(NamedTuple):
    """A chain in burn-in: its state and the moments that tune it."""

    chain: sghmc.Chain
    moments: sghmc.GradientMoments


def at_rest(positions: Float[Array, "c k"]) -> Tuned:
    """All chains at rest where they start, nothing known of their gradients."""
    return Tuned(jax.vmap(sghmc.init)(positions), jax.vmap(sghmc.init_moments)(positions))


def marked(tuned: Tuned) -> Tuned:
    """Remember where the chains are, to start again from if one diverges."""
    return tuned._replace(chain=sghmc.mark(tuned.chain))


def move(
    density_key: PRNGKeyArray,
    step_key: PRNGKeyArray,
    chain: sghmc.Chain,
    moments: sghmc.GradientMoments,
    density: mcem.Density,
    dynamics: sghmc.Dynamics,
    num_data: Int[Array, ""],
    anchor: Anchor | None = None,
) -> tuple[sghmc.Chain, Flat, Array]:
    """One SGHMC step; returns the chain, the gradient it followed and the watched mean log-likelihood.

    With an anchor a the gradient is grad U_B(v) - grad U_B(a) + grad U(a), U_B on one minibatch and one draw of the
    hidden noise: unbiased if grad U(a) is exact, and quieter the nearer v is to a (Baker, Fearnhead, Fox, Nemeth 2019,
    "Control variates for stochastic gradient MCMC").
    """

    def potential(v: Flat) -> tuple[Array, Array]:
        value, watched = density(density_key, v)
        return -value, watched

    if anchor is None:
        gradient, fit = jax.grad(potential, has_aux=True)(chain.position)
    else:
        both = jnp.stack([chain.position, anchor.position])
        (here, there), (fit, _) = jax.vmap(jax.grad(potential, has_aux=True))(both)
        gradient = here - there + anchor.gradient
    moved = sghmc.step(step_key, chain, moments, gradient, dynamics, 1.0 / num_data.astype(fit.dtype))
    return moved, gradient, fit


def tuned_sampler(
    config: Config, dynamics: sghmc.Dynamics, num_data: Int[Array, ""], iteration: Int[Array, ""]
) -> mcem.Sampler:
    """SGHMC on all chains at once, each adapting its own preconditioner.

    The floor under its window grows with the iteration, so that the start of the moments is forgotten.
    """
    floor = jnp.minimum(iteration, config.shortest_window).astype(float)

    def one(keys: Key[Array, "2"], tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        density_key, step_key = keys
        chain, gradient, fit = move(density_key, step_key, tuned.chain, tuned.moments, density, dynamics, num_data)
        adapted, _ = keep_finite(sghmc.adapt(tuned.moments, gradient, floor), tuned.moments)
        return Tuned(chain, adapted), fit

    def step(key: PRNGKeyArray, tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        keys = jax.random.split(key, (config.num_chains, 2))
        moved, fits = jax.vmap(lambda k, t: one(k, t, density))(keys, tuned)
        return moved, jnp.mean(fits)

    return mcem.Sampler(step, lambda tuned: tuned.chain.position)


def move_all(
    config: Config,
    dynamics: sghmc.Dynamics,
    key: PRNGKeyArray,
    chains: sghmc.Chain,
    moments: sghmc.GradientMoments,
    density: mcem.Density,
    num_data: Int[Array, ""],
    anchors: Anchor | None = None,
) -> tuple[sghmc.Chain, Array]:
    """One step of every chain with its preconditioner frozen."""
    keys = jax.random.split(key, (config.num_chains, 2))

    def one(
        k: Key[Array, "2"], c: sghmc.Chain, m: sghmc.GradientMoments, a: Anchor | None
    ) -> tuple[sghmc.Chain, Flat, Array]:
        density_key, step_key = k
        return move(density_key, step_key, c, m, density, dynamics, num_data, a)

    chains, _, fits = jax.vmap(one)(keys, chains, moments, anchors)
    return chains, jnp.mean(fits)


def burn_in_dynamics(config: Config, rates: Rates, iteration: Int[Array, ""]) -> sghmc.Dynamics:
    """epsilon and alpha at an iteration of burn-in."""
    epsilon, alpha = (rate_at(knots, iteration, config.burn_in) for knots in (rates.step_size, rates.friction))
    return sghmc.Dynamics(epsilon, alpha, config.subtract_gradient_noise)


def sampling_dynamics(config: Config, rates: Rates, iteration: Int[Array, ""]) -> sghmc.Dynamics:
    """epsilon and alpha at an iteration of sampling."""
    iterations = config.num_samples * config.spacing
    knots = rates.sampling_step_size, rates.sampling_friction
    epsilon, alpha = (rate_at(rate, iteration, iterations) for rate in knots)
    return sghmc.Dynamics(epsilon, alpha, config.subtract_gradient_noise)


def no_samples(config: Config, size: int, dtype: jnp.dtype) -> Samples:
    """Room for the samples of all chains."""
    return jnp.zeros((config.num_chains, config.num_samples, size), dtype)


def collect(
    config: Config,
    chains: sghmc.Chain,
    samples: Samples,
    first: Int[Array, ""],
    last: Int[Array, ""],
    iterate: Callable[[Array, sghmc.Chain], tuple[sghmc.Chain, Array]],
) -> tuple[sghmc.Chain, Samples, Float[Array, ""]]:
    """Iterations ``first`` up to ``last``, whole multiples of the spacing, the state after each spacing kept."""

    def body(s: Array, carry: tuple[sghmc.Chain, Array, Array]) -> tuple[sghmc.Chain, Array, Array]:
        def inner(i: Array, carry: tuple[sghmc.Chain, Array]) -> tuple[sghmc.Chain, Array]:
            moved, fit = iterate(i, carry[0])
            return moved, carry[1] + fit

        chains, samples, total = carry
        chains, total = lax.fori_loop(s * config.spacing, (s + 1) * config.spacing, inner, (chains, total))
        return chains, samples.at[:, s].set(chains.position), total

    zero = jnp.zeros((), samples.dtype)
    ends = first // config.spacing, last // config.spacing
    chains, samples, total = lax.fori_loop(*ends, body, (sghmc.mark(chains), samples, zero))
    return chains, samples, total / (last - first)
