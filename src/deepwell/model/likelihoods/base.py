"""What every likelihood answers, and the quadrature that answers where no closed form exists."""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LOG_TWO_PI = math.log(2.0 * math.pi)
STEEPEST = 20.0
"""Exponentials go on as straight lines from exp(20) on, so that no latent value, however far off, overflows."""

Marginal = Any
"""p(y | x) under one posterior sample, as the parameters of its family: ``Normals``, ``Rates`` or ``Probabilities``."""


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """log N(y; mean, variance), elementwise."""
    return -0.5 * (LOG_TWO_PI + jnp.log(variance) + (y - mean) ** 2 / variance)


def bounded_exp(x: Array) -> Array:
    """exp(x), from ``STEEPEST`` on its tangent."""
    return jnp.exp(jnp.minimum(x, STEEPEST)) * (1.0 + jnp.maximum(x - STEEPEST, 0.0))


def hermite(count: int, dtype: jnp.dtype) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Nodes x_k and weights w_k with E g(x) = sum_k w_k g(x_k) for x ~ N(0, 1) and polynomials up to 2 count - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return jnp.asarray(nodes, dtype), jnp.asarray(weights / np.sum(weights), dtype)


def at_nodes(mean: Array, variance: Array, nodes: Float[Array, " k"]) -> Float[Array, "... k"]:
    """mean + sqrt(variance) x_k, the nodes along a new last axis."""
    return mean[..., None] + jnp.sqrt(variance)[..., None] * nodes


class Likelihood(eqx.Module):
    """p(y | f), independent over rows; densities are joint over the columns of y.

    Four questions about a Gaussian q(f) = N(mean, diag variance), and a fifth for predictions: ``marginal``.
    """

    smooth: ClassVar[bool] = True
    """Whether log p(y | f) has a gradient in f that a sampler can follow."""

    @abc.abstractmethod
    def num_latents(self, num_targets: int) -> int:
        """Columns of f."""

    @abc.abstractmethod
    def log_prob(self, f: Float[Array, "n q"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        """log p(y | f)."""

    @abc.abstractmethod
    def predict_mean_and_var(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"]
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r"]]:
        """Mean and variance of y under int p(y | f) q(f) df; of the indicator of every class where y is a class."""

    @abc.abstractmethod
    def predict_log_density(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """log int p(y | f) q(f) df."""

    @abc.abstractmethod
    def variational_expectations(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """int log p(y | f) q(f) df."""

    @abc.abstractmethod
    def marginal(self, mean: Float[Array, "n q"], variance: Float[Array, "n _"]) -> Marginal:
        """int p(y | f) q(f) df as a family's parameters; the variance has one column when the latents share it."""
