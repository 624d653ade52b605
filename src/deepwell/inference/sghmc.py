"""Stochastic gradient Hamiltonian Monte Carlo on any pytree, tuned by moving moments of the gradient.

Chen, Fox, Guestrin (2014), "Stochastic Gradient Hamiltonian Monte Carlo"; the auto-tuning is that of
Springenberg, Klein, Falkner, Hutter (2016), "Bayesian Optimization with Robust Bayesian Neural Networks".
The potential U here is the negative log density times ``temperature``: with the density per data point
(divided by N) the temperature is 1/N. Nothing in this file knows what is sampled.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from deepwell.numerics.randomness import standard_normal
from deepwell.numerics.trees import all_finite, select

TINY = 1e-16


SMALLEST_SHRINK = 2.0**-10


class Chain(NamedTuple):
    """Position and momentum, how many steps were refused because they left the finite numbers, the factor by which
    these have shrunk the step size, and the position to start again from."""

    position: PyTree
    momentum: PyTree
    refused: Int[Array, ""]
    shrink: Float[Array, ""]
    safe: PyTree


class GradientMoments(NamedTuple):
    """Moving averages of the gradient and of its square over ``window`` + 1 steps, per coordinate."""

    window: PyTree
    gradient: PyTree
    square: PyTree


class Dynamics(NamedTuple):
    """epsilon and alpha of the update; ``subtract_gradient_noise`` takes B-hat off the injected noise."""

    step_size: Float[Array, ""] | float = 0.01
    friction: Float[Array, ""] | float = 0.05
    subtract_gradient_noise: bool = False


def init(position: PyTree) -> Chain:
    """At ``position``, at rest."""
    dtype = jax.tree.leaves(position)[0].dtype
    at_rest = jax.tree.map(jnp.zeros_like, position)
    return Chain(position, at_rest, jnp.zeros((), jnp.int32), jnp.ones((), dtype), position)


def mark(chain: Chain) -> Chain:
    """Remember where the chain is, to start again from if it diverges."""
    return chain._replace(safe=chain.position)


def init_moments(position: PyTree) -> GradientMoments:
    """xi = g = g^2 = 1, the start of the published code."""
    ones = jax.tree.map(jnp.ones_like, position)
    return GradientMoments(ones, ones, ones)


def adapt(moments: GradientMoments, gradient: PyTree, shortest_window: Float[Array, ""]) -> GradientMoments:
    """One update of the moments (Springenberg et al. 2016, Eq. 8-9), all from the old moments.

    r = 1/(xi + 1);  xi <- 1 + xi (1 - g^2 / g2);  g <- (1 - r) g + r grad;  g2 <- (1 - r) g2 + r grad^2.

    Autocorrelated gradients make the window collapse to about one step, and the chain then does not sample
    its target; ``shortest_window`` is a floor under xi (0: as published).
    """

    def update(xi: Array, g: Array, g2: Array, grad: Array) -> tuple[Array, Array, Array]:
        rate = 1.0 / (xi + 1.0)
        longer = 1.0 + xi * (1.0 - g**2 / (g2 + TINY))
        return jnp.maximum(longer, shortest_window), g + rate * (grad - g), g2 + rate * (grad**2 - g2)

    updated = jax.tree.map(update, moments.window, moments.gradient, moments.square, gradient)
    return GradientMoments(*jax.tree.transpose(jax.tree.structure(gradient), jax.tree.structure((0, 0, 0)), updated))


def inverse_mass(moments: GradientMoments) -> PyTree:
    """M^{-1} = 1 / sqrt(g2)."""
    return jax.tree.map(lambda g2: 1.0 / jnp.sqrt(g2 + TINY), moments.square)


def step(
    key: PRNGKeyArray,
    chain: Chain,
    moments: GradientMoments,
    gradient: PyTree,
    dynamics: Dynamics,
    temperature: Float[Array, ""],
) -> Chain:
    """p <- p - eps^2 Minv grad - alpha p + N(0, 2 eps^2 alpha Minv T);  v <- v + p.

    ``gradient`` is that of the potential. With B-hat, the variance of the gradient, g2 - g^2, which enters
    the momentum as eps^4 Minv^2 (g2 - g^2), is taken off the injected noise, down to zero. A step that
    would leave the finite numbers is not taken: the chain starts again from its mark, at rest, with half the step size.
    """
    eps, alpha = dynamics.step_size * chain.shrink, dynamics.friction
    leaves, structure = jax.tree.flatten(chain.position)
    keys = jax.tree.unflatten(structure, [key] if len(leaves) == 1 else list(jax.random.split(key, len(leaves))))

    def move(k: PRNGKeyArray, p: Array, grad: Array, minv: Array, g: Array, g2: Array) -> Array:
        variance = 2.0 * eps**2 * alpha * minv * temperature
        if dynamics.subtract_gradient_noise:
            variance = jnp.maximum(variance - eps**4 * minv**2 * (g2 - g**2), 0.0)
        noise = jnp.sqrt(variance) * standard_normal(k, p.shape, p.dtype)
        return p - eps**2 * minv * grad - alpha * p + noise

    momentum = jax.tree.map(
        move, keys, chain.momentum, gradient, inverse_mass(moments), moments.gradient, moments.square
    )
    position = jax.tree.map(jnp.add, chain.position, momentum)
    finite = all_finite((position, momentum))
    return Chain(
        select(finite, position, chain.safe),
        select(finite, momentum, jax.tree.map(jnp.zeros_like, momentum)),
        chain.refused + (~finite).astype(jnp.int32),
        jnp.where(finite, chain.shrink, jnp.maximum(0.5 * chain.shrink, SMALLEST_SHRINK)),
        chain.safe,
    )
