"""Likelihoods of real numbers: y = f + noise, the noise normal with a variance that may itself be uncertain.

Given q(f) = N(mean, variance), y is then a mixture of normals that share their mean,

    int p(y | f) q(f) df = sum_k w_k N(y; mean, variance + noise_k),

one of them for Gaussian noise, and the nodes of a quadrature where the noise's variance has a distribution. Integrating
over that variance, not over f, stays accurate whatever the ratio of the two.
"""

import abc
from typing import Annotated, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.model.likelihoods.base import Likelihood
from deepwell.model.priors import excess_degrees_prior, noise_prior
from deepwell.numerics.quadrature import LOG_TWO_PI, at_nodes, bounded_exp, gaussian_log_density, hermite

FLOOR = 1e-6
"""Least variance of noise: the ``predictive`` objective can drive it to zero, and densities must stay finite."""
NODES = 20
DEGREES_FLOOR = 2.0
EXPECTATION_NODES = 32
SCALE_NODES, SPREADING, LOWEST, HIGHEST = 48, 0.2, -14.0, 5.0
"""Nodes for Student's noise: dense near the mode of the log precision, wider apart (sinh) towards the tail, from -14,
which an outlier of 1,000 scales asks for, to 5 of its standard deviations."""
LARGEST_LOG_DEGREES = 7.0
"""Beyond a thousand degrees of freedom Student's noise is normal, and gradients in them are rounding."""


class Normals(NamedTuple):
    """y_j ~ sum_k exp(log_weights_jk) N(mean_j, variance_j + noise_jk); rows are 1 where all rows agree."""

    mean: Float[Array, "n p"]
    variance: Float[Array, "n _"]
    noise: Float[Array, "_ p k"]
    log_weights: Float[Array, "_ _ k"]


class Noisy(Likelihood):
    """y = f + noise with noise ~ sum_k w_k N(0, noise_k)."""

    @abc.abstractmethod
    def marginal(self, mean: Float[Array, "n q"], variance: Float[Array, "n _"]) -> Normals:
        """The mixture of normals."""

    def predict_log_density(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        parts = self.marginal(mean, variance)
        spread = parts.variance[..., None] + parts.noise
        per_node = gaussian_log_density(y[..., None], parts.mean[..., None], spread) + parts.log_weights
        return jnp.sum(jax.nn.logsumexp(per_node, -1), -1)

    def predict_mean_and_var(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        parts = self.marginal(mean, variance)
        return parts.mean, parts.variance + jnp.sum(jnp.exp(parts.log_weights) * parts.noise, -1)


@final
class Gaussian(Noisy):
    """p(y | f) = prod_j N(y_j; f_j, noise_j), noise_j = floor + exp(log_noise_variance_j)."""

    log_noise_variance: Annotated[Float[Array, " p"], noise_prior]
    floor: float = eqx.field(static=True, default=FLOOR)

    @property
    def noise_variance(self) -> Float[Array, " p"]:
        return self.floor + jnp.exp(self.log_noise_variance)

    def num_latents(self, num_targets: int) -> int:
        return num_targets

    def log_prob(self, f: Float[Array, "n p"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        return jnp.sum(gaussian_log_density(y, f, self.noise_variance), -1)

    def predict_log_density(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        return jnp.sum(gaussian_log_density(y, mean, variance + self.noise_variance), -1)

    def variational_expectations(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        penalty = 0.5 * variance / self.noise_variance
        return jnp.sum(gaussian_log_density(y, mean, self.noise_variance) - penalty, -1)

    def marginal(self, mean: Float[Array, "n p"], variance: Float[Array, "n _"]) -> Normals:
        return Normals(mean, variance, self.noise_variance[None, :, None], jnp.zeros((1, 1, 1), mean.dtype))


@final
class StudentT(Noisy):
    """p(y | f) = prod_j t(y_j; f_j, scale_j^2, degrees_j), for data with outliers.

    t = int N(y; f, scale^2 / w) Gamma(w; degrees / 2, degrees / 2) dw, by the trapezoidal rule in u with
    log w = sqrt(2 / degrees) sinh(0.2 u) / 0.2; degrees = 2 + exp(log_excess_degrees), so that y has a variance.
    """

    log_noise_variance: Annotated[Float[Array, " p"], noise_prior]
    """log scale^2, less the floor."""
    log_excess_degrees: Annotated[Float[Array, " p"], excess_degrees_prior]
    floor: float = eqx.field(static=True, default=FLOOR)

    @property
    def squared_scale(self) -> Float[Array, " p"]:
        return self.floor + jnp.exp(self.log_noise_variance)

    @property
    def degrees(self) -> Float[Array, " p"]:
        return DEGREES_FLOOR + jnp.exp(jnp.minimum(self.log_excess_degrees, LARGEST_LOG_DEGREES))

    def num_latents(self, num_targets: int) -> int:
        return num_targets

    def log_prob(self, f: Float[Array, "n p"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        return jnp.sum(_student_log_density(y, f, self.squared_scale, self.degrees), -1)

    def variational_expectations(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        nodes, weights = hermite(EXPECTATION_NODES, mean.dtype)
        f = at_nodes(mean, variance, nodes)
        per_node = _student_log_density(y[..., None], f, self.squared_scale[:, None], self.degrees[:, None])
        return jnp.sum(per_node @ weights, -1)

    def predict_mean_and_var(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        return mean, variance + self.squared_scale * self.degrees / (self.degrees - 2.0)

    def marginal(self, mean: Float[Array, "n p"], variance: Float[Array, "n _"]) -> Normals:
        degrees = self.degrees[:, None]
        width = jnp.sqrt(2.0 / degrees)
        first, last = (jnp.arcsinh(SPREADING * end) / SPREADING for end in (LOWEST / width, HIGHEST))
        u = first + (last - first) * jnp.linspace(0.0, 1.0, SCALE_NODES, dtype=mean.dtype)
        log_precision = width * jnp.sinh(SPREADING * u) / SPREADING
        density = 0.5 * degrees * (log_precision - jnp.expm1(log_precision))
        log_weights = jax.nn.log_softmax(density + jnp.log(jnp.cosh(SPREADING * u)), -1)
        noise = self.squared_scale[:, None] * jnp.exp(-log_precision)
        return Normals(mean, variance, noise[None], log_weights[None])


def _student_log_density(y: Array, mean: Array, squared_scale: Array, degrees: Array) -> Array:
    """log t(y; mean, squared_scale, degrees), elementwise."""
    half = 0.5 * (degrees + 1.0)
    constant = jax.lax.lgamma(half) - jax.lax.lgamma(0.5 * degrees) - 0.5 * jnp.log(jnp.pi * degrees * squared_scale)
    return constant - half * jnp.log1p((y - mean) ** 2 / (degrees * squared_scale))


@final
class HeteroscedasticGaussian(Noisy):
    """p(y | f, g) = prod_j N(y_j; f_j, noise_j), noise_j = floor + exp(log_noise_variance_j + g_j).

    The latents are (f_1 .. f_p, g_1 .. g_p): the noise is a function of the inputs as well. f is integrated out in
    closed form, g by Gauss-Hermite quadrature.
    """

    log_noise_variance: Annotated[Float[Array, " p"], noise_prior]
    floor: float = eqx.field(static=True, default=FLOOR)

    def num_latents(self, num_targets: int) -> int:
        return 2 * num_targets

    def _noise(self, g: Float[Array, "n p k"]) -> Float[Array, "n p k"]:
        return self.floor + bounded_exp(self.log_noise_variance[:, None] + g)

    def log_prob(self, f: Float[Array, "n q"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        mean, g = jnp.split(f, 2, -1)
        return jnp.sum(gaussian_log_density(y, mean, self._noise(g[..., None])[..., 0]), -1)

    def variational_expectations(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        parts = self.marginal(mean, variance)
        squared = (y - parts.mean) ** 2 + parts.variance
        per_node = -0.5 * (LOG_TWO_PI + jnp.log(parts.noise) + squared[..., None] / parts.noise)
        return jnp.sum(jnp.exp(parts.log_weights) * per_node, (-2, -1))

    def marginal(self, mean: Float[Array, "n q"], variance: Float[Array, "n _"]) -> Normals:
        nodes, weights = hermite(NODES, mean.dtype)
        f_mean, g_mean = jnp.split(mean, 2, -1)
        f_variance, g_variance = jnp.split(jnp.broadcast_to(variance, mean.shape), 2, -1)
        return Normals(
            f_mean, f_variance, self._noise(at_nodes(g_mean, g_variance, nodes)), jnp.log(weights)[None, None]
        )
