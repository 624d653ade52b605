"""Standardising columns, in float64, so that any unit and offset survives the float32 core."""

from typing import NamedTuple

import numpy as np

INPUT_SCALINGS = ("columns", "together")
MANY_COLUMNS = 32


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

    Pixels, bits and word counts share a unit, and a column that is hardly ever on would be blown up by a scale of its
    own. None: ``together`` if there are many columns and all have the same minimum.
    """
    own = fit_scaling(x)
    if how is None:
        how = "together" if x.shape[1] >= MANY_COLUMNS and np.ptp(np.min(x, axis=0)) == 0.0 else "columns"
    if how == "columns":
        return own
    moving = np.ptp(x, axis=0) > 0.0
    common = np.sqrt(np.mean(np.where(moving, own.scale, 0.0) ** 2))
    return Scaling(own.offset, np.full_like(own.scale, common if np.isfinite(common) and common > 0.0 else 1.0))


def fit_scaling(x: np.ndarray) -> Scaling:
    """Mean and standard deviation of each column; spread within rounding of the mean counts as none."""
    x = np.asarray(x, np.float64)
    largest = np.max(np.abs(x), axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)  # divide first: squares of 1e200 overflow
    offset = np.mean(x / unit, axis=0) * unit
    scale = np.std((x - offset) / unit, axis=0) * unit
    constant = scale <= 1e-12 * largest
    return Scaling(offset, np.where(constant, 1.0, scale))
