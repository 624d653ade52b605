"""What the posterior would say of a row, and of its neighbours, had it not seen the row's target.

Over the posterior samples, let the means m_i at the row and m_k at a neighbour have variance V and covariance C_k, and
let y_i = m_i + N(0, tau). If the means are jointly Gaussian, the posterior divided by N(y_i; m_i, tau) has

    E[m_k] - C_k / (tau - V) (y_i - E[m_i])    and    Cov[m_k, m_l] + C_k C_l / (tau - V),

Kalman's update backwards; at k = i it divides the residual by one less the leverage V / tau. Samples with these moments
come of moving m_i, by a shift and a stretch, and every m_k by C_k / V of that.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

HIGHEST_LEVERAGE = 0.7
"""A leverage above this is cut: a row that alone decides its fit says nothing of others."""
TINY_VARIANCE = 1e-30


def move_without_target(mean: Float[Array, " s"], y: Float[Array, ""], tau: Float[Array, ""]) -> Float[Array, " s"]:
    """How far each sample of the mean at a row moves when the row's target is taken out."""
    centre = jnp.mean(mean)
    leverage = jnp.minimum(jnp.var(mean) / tau, HIGHEST_LEVERAGE)
    stretch = 1.0 / jnp.sqrt(1.0 - leverage) - 1.0
    return stretch * (mean - centre) - leverage / (1.0 - leverage) * (y - centre)


def carried_over(
    move: Float[Array, " s"], mean: Float[Array, " s"], others: Float[Array, "k s"]
) -> Float[Array, "k s"]:
    """How far the samples of the means at other rows move with it."""
    deviation = mean - jnp.mean(mean)
    slope = jnp.mean(deviation * others, 1) / jnp.maximum(jnp.mean(deviation**2), TINY_VARIANCE)
    return slope[:, None] * move
