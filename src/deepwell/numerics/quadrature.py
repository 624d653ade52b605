"""Expectations under normal laws: the log density, nodes and weights, and an exponential that does not overflow."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LOG_TWO_PI = math.log(2.0 * math.pi)
STEEPEST = 20.0
"""``bounded_exp`` is a straight line beyond exp(20), so that no latent value overflows."""


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """log N(y; mean, variance), elementwise."""
    return -0.5 * (LOG_TWO_PI + jnp.log(variance) + (y - mean) ** 2 / variance)


def bounded_exp(x: Array) -> Array:
    """exp(x) up to ``STEEPEST``, and the tangent at that point beyond it."""
    return jnp.exp(jnp.minimum(x, STEEPEST)) * (1.0 + jnp.maximum(x - STEEPEST, 0.0))


def hermite(count: int, dtype: jnp.dtype) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Gauss-Hermite nodes x_k and weights w_k: E g(x) = sum_k w_k g(x_k) for x ~ N(0, 1) and polynomials g of degree
    up to 2 count - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return jnp.asarray(nodes, dtype), jnp.asarray(weights / np.sum(weights), dtype)


def at_nodes(mean: Array, variance: Array, nodes: Float[Array, " k"]) -> Float[Array, "... k"]:
    """mean + sqrt(variance) x_k, the nodes along a new last axis."""
    return mean[..., None] + jnp.sqrt(variance)[..., None] * nodes


@functools.cache
def sobol_normal_nodes(dimension: int, count: int) -> np.ndarray:
    """``count`` standard normal points: a scrambled Sobol sequence with a fixed seed, and its mirror image."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(0)).random(count // 2)
    return np.concatenate([ndtri(points), -ndtri(points)])
