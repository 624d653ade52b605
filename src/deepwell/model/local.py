"""The local part: under each posterior sample s, what the model leaves of y, r = y - m_s(x), is a GP of its own,

    C(x, x') = w a sqrt(R'(x) R'(x')) kappa(x, x') + delta_{x x'} ((1 - w) a R(x) + n sigma^2(x)),   R' = R + b sigma^2,

conditioned on the K nearest training rows. R is the conditional variance of the last layer, sigma^2 the variance of the
noise, kappa a Matern 3/2 correlation of the inputs and of the model's own mean. w = 0, a = n = 1 is the model alone. A
row's whole variance may have a scale of its own, nearly that of Student's t (``Tail``).

Vecchia (1988), "Estimation and model identification for continuous spatial processes"; Snelson, Ghahramani (2007),
"Local and global sparse Gaussian process approximations"; Datta, Banerjee, Finley, Gelfand (2016), "Hierarchical
nearest-neighbor Gaussian process models for large geostatistical datasets".

The samples share one factorisation, that of C with R and sigma^2 averaged over them. They differ in their residuals and
in their variances at the row.
"""

from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.model.kernels import Matern32
from deepwell.numerics.linalg import default_jitter

LOG_SCALES = (-1.0, 1.0 / 3.0, 5.0 / 3.0, 3.0)
"""Four normals of these log variances, up to a factor, come as near to Student's t in density as is of use."""
LARGEST_LOG_DEGREES = 6.0
"""From here on one node has all the weight."""


class Sites(NamedTuple):
    """Rows as the local part sees them: standardised inputs followed by the model's mean; R and sigma^2 of each target,
    averaged over the posterior samples."""

    features: Float[Array, "*n e"]
    variance: Float[Array, "*n p"]
    noise: Float[Array, "*n p"]


class Conditioned(NamedTuple):
    """What the neighbours say of a row: the weights of their residuals, and the share of the correlated variance that
    they explain."""

    weights: Float[Array, "k p"]
    explained: Float[Array, " p"]


class Parts(NamedTuple):
    """The variance of a residual: ``correlated`` w a R', ``loose`` (1 - w) a R, and ``noise`` n sigma^2."""

    correlated: Array
    loose: Array
    noise: Array

    @property
    def total(self) -> Array:
        return self.correlated + self.loose + self.noise


@final
class Tail(eqx.Module):
    """A row's variance is multiplied by tau, E tau = 1, on a few nodes; their weights are those of an inverse gamma
    tau, which would make normals Student's t."""

    log_degrees: Float[Array, " p"]

    def nodes(self) -> tuple[Float[Array, "p k"], Float[Array, "p k"]]:
        """tau and the logarithms of its weights."""
        log_tau = jnp.asarray(LOG_SCALES, self.log_degrees.dtype)
        half_degrees = 0.5 * jnp.exp(jnp.minimum(self.log_degrees, LARGEST_LOG_DEGREES))[:, None]
        log_weights = jax.nn.log_softmax(-half_degrees * (log_tau + jnp.exp(-log_tau)), -1)
        return jnp.exp(log_tau - jax.nn.logsumexp(log_weights + log_tau, -1, keepdims=True)), log_weights


@final
class LocalKernel(eqx.Module):
    """The covariance C: lengthscales shared by the targets, the other numbers one for each target."""

    log_lengthscales: Float[Array, " e"]
    logit_share: Float[Array, " p"]
    """w is its logistic function; at minus infinity the neighbours count nothing."""
    log_amplitude: Float[Array, " p"]
    log_noise: Float[Array, " p"]
    log_borrowed: Float[Array, " p"]
    """log b: minus infinity unless the method has no conditional variance."""
    floor: Float[Array, " p"]
    """Least variance of a row, which is not learned: what rounding y takes away."""
    tail: Tail | None = None

    def parts(self, variance: Float[Array, "*n _"], noise: Float[Array, "*m p"]) -> Parts:
        """The variance at rows with these R and sigma^2."""
        share, amplitude = jax.nn.sigmoid(self.logit_share), jnp.exp(self.log_amplitude)
        return Parts(
            correlated=share * amplitude * (variance + jnp.exp(self.log_borrowed) * noise),
            loose=(1.0 - share) * amplitude * variance,
            noise=jnp.maximum(jnp.exp(self.log_noise) * noise, jax.lax.stop_gradient(self.floor)),
        )

    def correlation(self, x: Float[Array, "*#n e"], z: Float[Array, "*#n e"]) -> Float[Array, "*n"]:
        """kappa(x, z). By differences: those of products lose a matrix its sign where a lengthscale is very short."""
        return Matern32.correlation(jnp.sum(((x - z) * jnp.exp(-self.log_lengthscales)) ** 2, -1))

    def condition(self, row: Sites, neighbours: Sites) -> Conditioned:
        """One row given its neighbours.

        With rho^2 the correlated share of a residual's variance T, P_ij = rho_i rho_j kappa_ij + delta_ij (1 - rho_i^2)
        is the correlation of the neighbours' residuals and c_i = rho_i kappa(x, x_i) that of them with the row's
        correlated part. The latter has mean sqrt(w a R') sum_i [P^{-1} c]_i r_i / sqrt(T_i), and c^T P^{-1} c of its
        variance is explained.
        """
        among = self.correlation(neighbours.features[:, None], neighbours.features)
        across = self.correlation(neighbours.features, row.features)
        there = self.parts(neighbours.variance, neighbours.noise)
        root = jnp.sqrt(self.parts(row.variance, row.noise).correlated)

        def one(correlated: Array, total: Array, root: Array) -> tuple[Array, Array]:
            rho = jnp.sqrt(correlated / total)
            c = rho * across
            P = rho[:, None] * rho * among + jnp.diag(1.0 - rho**2 + default_jitter())
            half = jax.scipy.linalg.solve_triangular(factor := jnp.linalg.cholesky(P), c, lower=True)
            solved = jax.scipy.linalg.solve_triangular(factor, half, lower=True, trans=1)
            return root * solved / jnp.sqrt(total), jnp.minimum(jnp.sum(half**2), 1.0)

        weights, explained = jax.vmap(one, (1, 1, 0), (1, 0))(there.correlated, there.total, root)
        return Conditioned(weights, explained)

    def mean(
        self, mean: Float[Array, "s p"], weights: Float[Array, "k p"], residuals: Float[Array, "k s p"]
    ) -> Float[Array, "s p"]:
        """The mean of a row under each sample: the sample's own, and what its neighbours' residuals add."""
        return mean + jnp.sum(weights[:, None] * residuals, 0)

    def variances(
        self,
        variance: Float[Array, "s n _"],
        noise: Float[Array, "_ _ p k"],
        log_weights: Float[Array, "_ _ _ k"],
        explained: Float[Array, "n p"],
    ) -> tuple[Float[Array, "s n p"], Float[Array, "_ _ p j"], Float[Array, "_ _ _ j"]]:
        """Of rows under each sample: the function's variance, and nodes of the noise's with their log weights.

        With a tail the nodes hold what tau times the whole variance exceeds the function's by: their mean is the
        noise, but one of them alone may be negative.
        """
        parts = self.parts(variance, jnp.sum(jnp.exp(log_weights) * noise, -1))
        of_function = parts.loose + parts.correlated * (1.0 - explained)
        floor = jax.lax.stop_gradient(self.floor)[:, None]
        noise = jnp.maximum(jnp.exp(self.log_noise)[:, None] * noise, floor)
        if self.tail is None:
            return of_function, noise, log_weights
        tau, more = self.tail.nodes()
        whole = jnp.maximum(tau[:, None] * (of_function[..., None] + noise)[..., None], floor[..., None])
        nodes = whole - of_function[..., None, None]
        weights = log_weights[..., None] + more[:, None]
        return of_function, nodes.reshape(*nodes.shape[:3], -1), weights.reshape(*weights.shape[:3], -1)
