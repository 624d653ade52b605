"""Mixtures of normals as arrays: components along the last axis, weights that sum to one along it."""

import numpy as np
from scipy import special

NEWTON_STEPS = 60
GRID = 400
NO_WIDTH = 1e-100
REACH, STEPS_A_STD, STEPS_AT_ONCE = 6.5, 1.5, 8
"""For the integral of F (1 - F): its range beyond the outermost means in standard deviations, steps in one standard
deviation of the narrowest component, and the number of which step counts are multiples, so that few are distinct."""


def cdf(means: np.ndarray, variances: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P(Y <= y)."""
    return np.sum(weights * special.ndtr((y - means) / np.sqrt(variances)), -1)


def pdf(means: np.ndarray, variances: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Density at y."""
    return np.sum(weights * np.exp(-0.5 * (y - means) ** 2 / variances) / np.sqrt(2.0 * np.pi * variances), -1)


def quantile(means: np.ndarray, variances: np.ndarray, weights: np.ndarray, q: float) -> np.ndarray:
    """Newton steps kept inside a bracket: a mixture's quantile lies between the extreme quantiles of its components."""
    components = means + np.sqrt(variances) * special.ndtri(q)
    low, high = np.min(components, -1), np.max(components, -1)
    y = np.sum(weights * components, -1)
    settled = np.zeros(y.shape, bool)
    for _ in range(NEWTON_STEPS):
        excess = cdf(means, variances, weights, y[..., None]) - q
        slope = pdf(means, variances, weights, y[..., None])
        low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
        newton = y - excess / np.where(slope > 0.0, slope, np.inf)
        inside = (newton > low) & (newton < high) & (slope > 0.0)
        moved = np.where(settled, y, np.where(inside, newton, 0.5 * (low + high)))
        settled |= np.abs(moved - y) < 1e-12 * (1.0 + np.abs(y))
        y = moved
        if np.all(settled):
            break
    return y


def _absolute_moment(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E|X| for X ~ N(mean, variance); |mean| where the variance is zero."""
    std = np.maximum(np.sqrt(variance), NO_WIDTH)
    ratio = mean / std
    return mean * (2.0 * special.ndtr(ratio) - 1.0) + std * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * ratio**2)


def crps(
    means: np.ndarray, variances: np.ndarray, weights: np.ndarray, y: np.ndarray, coarse: bool = False
) -> np.ndarray:
    """E|Y - y| - E|Y - Y'| / 2. The first term has a closed form; the second is exact to nine digits, or computed on a
    coarse grid, which is quicker for many components of different widths."""
    to_y = np.sum(weights * _absolute_moment(means - y, variances), -1)
    return to_y - 0.5 * (_distance_by_grid if coarse else _distance)(means, variances, weights)


def _distance(means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """E|Y - Y'| of each mixture: by steps, or by pairs where that is less work. It is NaN where a parameter is NaN."""
    stds = np.sqrt(variances)
    low, high = np.min(means - REACH * stds, -1), np.max(means + REACH * stds, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.ceil(STEPS_A_STD * (high - low) / np.min(stds, -1) / STEPS_AT_ONCE) * STEPS_AT_ONCE
    by_steps = steps <= means.shape[-1]  # false where steps is infinite or NaN
    total = np.empty(means.shape[:-1])
    total[~by_steps] = _distance_by_pairs(means[~by_steps], variances[~by_steps], weights[~by_steps])
    for count in np.unique(steps[by_steps]):
        those = steps == count
        some = means[those], variances[those], weights[those]
        total[those] = _distance_by_steps(*some, low[those], (high - low)[those] / count, int(count))
    return total


def _distance_by_steps(
    means: np.ndarray, variances: np.ndarray, weights: np.ndarray, low: np.ndarray, step: np.ndarray, count: int
) -> np.ndarray:
    """E|Y - Y'| = 2 int F (1 - F) dz by the trapezoidal rule, whose error falls as exp(-(pi std / step)^2) with the
    narrowest component's standard deviation (Trefethen, Weideman 2014, "The exponentially convergent trapezoidal
    rule")."""
    total = np.zeros(means.shape[:-1])
    stds = np.sqrt(variances)
    from_low, steps = (low[..., None] - means) / stds, step[..., None] / stds
    for k in range(1, count):
        below = np.sum(weights * special.ndtr(from_low + k * steps), -1)
        total += below * (1.0 - below)
    return 2.0 * total * step


def _distance_by_pairs(means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """E|Y - Y'| in closed form; all pairs of components a fixed distance apart in the list are computed at once."""
    count = means.shape[-1]
    total = np.zeros(means.shape[:-1])
    for shift in range(count // 2 + 1):
        twice = 1.0 if shift == 0 or 2 * shift == count else 2.0
        other_means, other_variances, other_weights = (np.roll(x, shift, -1) for x in (means, variances, weights))
        moments = _absolute_moment(means - other_means, variances + other_variances)
        total += twice * np.sum(weights * other_weights * moments, -1)
    return total


def _distance_by_grid(means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """E|Y - Y'| = 2 int F (1 - F) dz by the trapezoidal rule in t, z = centre + width sinh(t), for long tails."""
    centre = quantile(means, variances, weights, 0.5)
    width = 0.5 * (quantile(means, variances, weights, 0.75) - quantile(means, variances, weights, 0.25))
    reach = np.max(np.abs(means - centre[..., None]) + 8.0 * np.sqrt(variances), -1)
    step = np.arcsinh(reach / width) / GRID * 2.0
    total = np.zeros_like(centre)
    for k in range(-GRID // 2, GRID // 2 + 1):
        below = cdf(means, variances, weights, (centre + width * np.sinh(k * step))[..., None])
        total += below * (1.0 - below) * np.cosh(k * step)
    return 2.0 * total * step * width
