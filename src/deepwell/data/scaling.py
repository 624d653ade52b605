"""Standardising columns, in float64, so that any unit and offset survives the float32 core."""

from typing import NamedTuple

import numpy as np

INPUT_SCALINGS = ("columns", "together")
MANY_COLUMNS, FARTHER = 32, 4.0
ROUNDING = 1e-12


class Scaling(NamedTuple):
    """x = offset + scale * (standardised x), per column; a constant column has scale 1."""

    offset: np.ndarray
    scale: np.ndarray

    def standardise(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # what is too far for float64 is infinitely far
            return (np.asarray(x, np.float64) - self.offset) / self.scale

    def restore(self, x: np.ndarray) -> np.ndarray:
        return self.offset + self.scale * np.asarray(x, np.float64)


def input_scaling(x: np.ndarray, how: str | None = None) -> Scaling:
    """``columns``: each column by its own standard deviation; ``together``: all by one, their root mean square.

    Pixels and bits share a unit, and a column that is hardly ever on would be blown up by a scale of its own. None:
    ``together`` if there are many columns, all with the same minimum, and none reaches much farther than most.
    """
    own = fit_scaling(x)
    if how is None:
        how = "together" if _share_a_unit(x) else "columns"
    moving = _moving(x)
    if how == "columns" or not np.any(moving):
        return own
    largest = np.max(own.scale[moving])  # divide first: squares of 1e200 overflow
    common = largest * np.sqrt(np.mean(np.where(moving, own.scale / largest, 0.0) ** 2))
    return Scaling(own.offset, np.full_like(own.scale, common))


def _share_a_unit(x: np.ndarray) -> bool:
    least, reach = np.min(x, axis=0), np.ptp(x, axis=0)
    if x.shape[1] < MANY_COLUMNS or np.any(least != least[0]) or not np.any(reach > 0.0):
        return False
    return bool(np.max(reach) <= FARTHER * np.median(reach[reach > 0.0]))


def _moving(x: np.ndarray) -> np.ndarray:
    """Which columns are not constant within rounding."""
    unit = _unit(x)
    return np.std((x - np.mean(x / unit, axis=0) * unit) / unit, axis=0) > ROUNDING


def _unit(x: np.ndarray) -> np.ndarray:
    largest = np.max(np.abs(x), axis=0)
    return np.where(largest > 0.0, largest, 1.0)


def fit_scaling(x: np.ndarray) -> Scaling:
    """Mean and standard deviation of each column; spread within rounding of the mean counts as none."""
    x = np.asarray(x, np.float64)
    unit = _unit(x)  # divide first: squares of 1e200 overflow
    offset = np.mean(x / unit, axis=0) * unit
    spread = np.std((x - offset) / unit, axis=0)
    return Scaling(offset, np.where(spread <= ROUNDING, 1.0, spread * unit))
