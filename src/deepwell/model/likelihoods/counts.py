"""A likelihood of counts 0, 1, 2, ..."""

from typing import Annotated, ClassVar, NamedTuple, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.data.response import Kind
from deepwell.model.likelihoods.base import Likelihood
from deepwell.model.parameters import CONSTANT
from deepwell.numerics.quadrature import (
    LOG_TWO_PI,
    STEEPEST,
    at_nodes,
    bounded_exp,
    gaussian_log_density,
    hermite,
)

NODES, NEWTON_STEPS = 20, 6
SERIES_FROM = 20.0
SMOOTHING = 0.15
"""Share of the log rate's variance that widens the nodes: their spacing is then 1.2 times their width."""


class Rates(NamedTuple):
    """y_j ~ sum_k exp(log_weights_k) NegativeBinomial(mean rates_jk, variance rates_jk + dispersion_j rates_jk^2).

    A Poisson count whose log rate is N(m, v): the nodes carry most of v, and the rest widens each Poisson to a negative
    binomial, so that large counts, whose Poissons are narrower than the nodes are apart, have no gaps between them.
    """

    rates: Float[Array, "n p k"]
    dispersion: Float[Array, "n p"]
    log_weights: Float[Array, "1 1 k"]


@final
class Poisson(Likelihood):
    """p(y | f) = prod_j Poisson(y_j; exp(offset_j + f_j)).

    ``offset``, the logarithm of the mean count, is a constant of the model: latents start, and vary, around zero.
    """

    response: ClassVar[Kind] = "counts"
    offset: Annotated[Float[Array, " p"], CONSTANT]

    def num_latents(self, num_targets: int) -> int:
        return num_targets

    def log_prob(self, f: Float[Array, "n p"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        return jnp.sum(self._log_mass(f[..., None], y)[..., 0], -1)

    def _log_mass(self, f: Float[Array, "n p k"], y: Float[Array, "n p"]) -> Float[Array, "n p k"]:
        return _poisson_log_mass(self.offset[:, None] + f, y[..., None])

    def predict_mean_and_var(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        """E y = exp(offset + m + v / 2), var y = E y + (E y)^2 (exp v - 1)."""
        expected = bounded_exp(self.offset + mean + 0.5 * variance)
        return expected, expected + expected**2 * (bounded_exp(variance) - 1.0)

    def predict_log_density(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """Gauss-Hermite around the mode of p(y | f) q(f), since a large count says far more about f than q(f) does
        (Liu, Pierce 1994, "A note on Gauss-Hermite quadrature")."""
        nodes, weights = hermite(NODES, mean.dtype)
        centre, spread = jax.lax.stop_gradient(self._mode(mean, variance, y))
        f = at_nodes(centre, spread, nodes)
        correction = gaussian_log_density(f, mean[..., None], variance[..., None]) - gaussian_log_density(
            f, centre[..., None], spread[..., None]
        )
        return jnp.sum(jax.nn.logsumexp(self._log_mass(f, y) + correction + jnp.log(weights), -1), -1)

    def _mode(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array]:
        """Mode of log p(y | f) + log q(f), a concave function, by Newton steps, and -1 over its curvature there."""
        heard = jnp.log(jnp.maximum(y, 0.5)) - self.offset
        f = (y * heard + mean / variance) / (y + 1.0 / variance)
        for _ in range(NEWTON_STEPS):
            rate = bounded_exp(self.offset + f)
            step = (y - rate - (f - mean) / variance) / (rate + 1.0 / variance)
            f = f + jnp.clip(step, -1.0, 1.0)
        return f, 1.0 / (bounded_exp(self.offset + f) + 1.0 / variance)

    def variational_expectations(
        self, mean: Float[Array, "n p"], variance: Float[Array, "n p"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """y (offset + m) - exp(offset + m + v / 2) - log y!, in closed form."""
        half = 0.5 * variance
        return jnp.sum(_poisson_log_mass(self.offset + mean + half, y) - y * half, -1)

    def marginal(self, mean: Float[Array, "n p"], variance: Float[Array, "n _"]) -> Rates:
        nodes, weights = hermite(NODES, mean.dtype)
        variance = jnp.broadcast_to(variance, mean.shape)
        rest = SMOOTHING * variance
        log_rates = at_nodes(self.offset + mean + 0.5 * rest, variance - rest, nodes)
        return Rates(bounded_exp(log_rates), jnp.expm1(jnp.minimum(rest, STEEPEST)), jnp.log(weights)[None, None])


def _poisson_log_mass(log_rate: Array, y: Array) -> Array:
    """y log rate - rate - log y!, elementwise, as y (d - expm1 d) - (log y! - y log y + y) with d = log rate - log y:
    in single precision the plain form loses whole nats at counts of a million."""
    positive = jnp.maximum(y, 1.0)
    d = log_rate - jnp.log(positive)
    near = jnp.minimum(d, 1.0)
    far = y * d - (bounded_exp(log_rate) - y)
    large = jnp.maximum(y, SERIES_FROM)
    stirling = 0.5 * (LOG_TWO_PI + jnp.log(large)) + 1.0 / (12.0 * large) - 1.0 / (360.0 * large**3)
    small = jnp.minimum(positive, SERIES_FROM)
    direct = jax.lax.lgamma(small + 1.0) - small * jnp.log(small) + small
    constant = jnp.where(y > SERIES_FROM, stirling, direct)
    some = jnp.where(d < 1.0, y * (near - jnp.expm1(near)), far) - constant
    return jnp.where(y > 0.0, some, -bounded_exp(log_rate))
