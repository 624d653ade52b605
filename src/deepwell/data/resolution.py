"""How finely a column tells values apart: no density of an integer or a rounded number should be sharper."""

import numpy as np

SAME = 1e-9
"""Values closer than this, relative to the column's standard deviation, are rounding of one value."""


def resolution(values: np.ndarray) -> np.ndarray:
    """The smallest gap between distinct values of each column; infinity where all are one."""
    return np.array([_smallest_gap(column) for column in np.asarray(values, np.float64).T])


def _smallest_gap(column: np.ndarray) -> float:
    gaps = np.diff(np.unique(column))
    return float(np.min(gaps[gaps > SAME * np.std(column)], initial=np.inf))


def rounding_variance(gap: np.ndarray) -> np.ndarray:
    """gap^2 / 12, the variance of what rounding to multiples of the gap takes away; zero for an infinite gap."""
    return np.where(np.isfinite(gap), gap, 0.0) ** 2 / 12.0
