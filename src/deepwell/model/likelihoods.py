"""Likelihoods p(y | f). Each answers four questions about a Gaussian q(f) = N(mean, variance)."""

import abc
import math
from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

LOG_TWO_PI = math.log(2.0 * math.pi)


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """log N(y; mean, variance), elementwise."""
    return -0.5 * (LOG_TWO_PI + jnp.log(variance) + (y - mean) ** 2 / variance)


class Likelihood(eqx.Module):
    """p(y | f), independent over rows; densities are joint over the columns of y."""

    @abc.abstractmethod
    def log_prob(self, f: Float[Array, "n p"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        """log p(y | f)."""

    @abc.abstractmethod
    def predict_mean_and_var(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        """Mean and variance of y under int p(y | f) q(f) df."""

    @abc.abstractmethod
    def predict_log_density(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """log int p(y | f) q(f) df."""

    @abc.abstractmethod
    def variational_expectations(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """int log p(y | f) q(f) df."""


@final
class Gaussian(Likelihood):
    """p(y | f) = prod_j N(y_j; f_j, noise_j), noise_j = floor + exp(log_noise_variance_j).

    The floor keeps densities finite: the ``predictive`` objective can drive the noise to zero.
    """

    log_noise_variance: Float[Array, " p"]
    floor: float = eqx.field(static=True, default=1e-6)

    @property
    def noise_variance(self) -> Float[Array, " p"]:
        return self.floor + jnp.exp(self.log_noise_variance)

    def log_prob(self, f: Float[Array, "n p"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        return jnp.sum(gaussian_log_density(y, f, self.noise_variance), -1)

    def predict_mean_and_var(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        return mean, variance + self.noise_variance

    def predict_log_density(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        return jnp.sum(gaussian_log_density(y, mean, variance + self.noise_variance), -1)

    def variational_expectations(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        penalty = 0.5 * variance / self.noise_variance
        return jnp.sum(gaussian_log_density(y, mean, self.noise_variance) - penalty, -1)
