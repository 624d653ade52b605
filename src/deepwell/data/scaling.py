"""Standardisation of columns, in float64, so that any unit and offset survives the float32 core."""

from typing import NamedTuple

import numpy as np

INPUT_SCALINGS = ("columns", "together")
MANY_COLUMNS, MAX_REACH = 32, 4.0
"""Columns that share a unit: at least so many, none reaching farther than so many times the median reach."""
ROUNDING = 1e-12


class Scaling(NamedTuple):
    """x = offset + scale * (standardised x), per column; a constant column has scale 1."""

    offset: np.ndarray
    scale: np.ndarray

    def standardise(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a value too large for float64 becomes infinite
            return (np.asarray(x, np.float64) - self.offset) / self.scale

    def restore(self, x: np.ndarray) -> np.ndarray:
        return self.offset + self.scale * np.asarray(x, np.float64)


def no_scaling(columns: int) -> Scaling:
    """Offset 0 and scale 1."""
    return Scaling(np.zeros(columns), np.ones(columns))


def fit_scaling(x: np.ndarray) -> Scaling:
    """Mean and standard deviation of each column."""
    offset, spread = _mean_and_spread(np.asarray(x, np.float64))
    return Scaling(offset, np.where(spread > 0.0, spread, 1.0))


def input_scaling(x: np.ndarray, how: str | None = None) -> Scaling:
    """``columns``: each column by its own standard deviation; ``together``: all by their root mean square.

    Pixels and bits share a unit, and a scale of its own would blow up a column that is rarely on. None means
    ``together`` for many columns of one minimum whose ranges are alike, and ``columns`` otherwise.
    """
    if how is None:
        how = "together" if x.shape[1] >= MANY_COLUMNS and _share_a_unit(x) else "columns"
    if how == "columns":
        return fit_scaling(x)
    offset, spread = _mean_and_spread(x)
    largest = np.max(spread)
    if largest == 0.0:
        return Scaling(offset, np.ones_like(spread))
    common = largest * np.sqrt(np.mean((spread / largest) ** 2))  # divide first: squares of 1e200 overflow
    return Scaling(offset, np.full_like(spread, common))


def _share_a_unit(x: np.ndarray) -> bool:
    least, reach = np.min(x, axis=0), np.ptp(x, axis=0)
    if np.any(least != least[0]) or not np.any(reach > 0.0):
        return False
    return bool(np.max(reach) <= MAX_REACH * np.median(reach[reach > 0.0]))


def _mean_and_spread(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a deviation within rounding of the mean is 0."""
    largest = np.max(np.abs(x), axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)  # divide first: squares of 1e200 overflow
    mean = np.mean(x / unit, axis=0) * unit
    spread = np.std((x - mean) / unit, axis=0)
    return mean, np.where(spread <= ROUNDING, 0.0, spread * unit)
