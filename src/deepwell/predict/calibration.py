"""Calibration: whether the stated uncertainty is right on rows that the fit has not seen."""

from typing import NamedTuple

import numpy as np

LEVELS = np.linspace(0.0, 1.0, 101)
BINS = 10


class Calibration(NamedTuple):
    """Of numbers and counts.

    pit: F(y) of every value, uniform on (0, 1) if the predictions are calibrated; coverage: the share of y inside the
    central interval of each of ``levels``; sharpness: mean width of the 90 % interval, in the units of y.
    """

    pit: np.ndarray
    levels: np.ndarray
    coverage: np.ndarray
    sharpness: float

    @property
    def error(self) -> float:
        """Mean distance between coverage and level."""
        return float(np.mean(np.abs(self.coverage - self.levels)))

    def __str__(self) -> str:
        at = {level: self.coverage[np.searchsorted(self.levels, level - 1e-9)] for level in (0.5, 0.9, 0.95)}
        shares = ", ".join(f"{level:.0%} intervals hold {share:.0%}" for level, share in at.items())
        gap = at[0.9] - 0.9
        tolerance = 2.0 * np.sqrt(0.9 * 0.1 / len(self.pit))
        verdict = "honest" if abs(gap) <= tolerance else ("too wide" if gap > 0.0 else "too narrow")
        return f"{shares}: the error bars are {verdict} (of {len(self.pit)} values)"


def calibration(pit: np.ndarray, sharpness: float) -> Calibration:
    """From F(y) of every value: y is inside the central interval of a level if |2 F(y) - 1| is at most the level."""
    central = np.abs(2.0 * pit - 1.0)
    coverage = np.asarray([np.mean(central <= level) for level in LEVELS])
    return Calibration(pit, LEVELS, coverage, sharpness)


class Reliability(NamedTuple):
    """Of classes, in bins of confidence: mean confidence, share of correct predictions, number of rows."""

    confidence: np.ndarray
    accuracy: np.ndarray
    rows: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error: sum_b (n_b / n) |accuracy_b - confidence_b|."""
        return float(np.sum(self.rows * np.abs(self.accuracy - self.confidence)) / np.sum(self.rows))


def reliability(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> Reliability:
    """From the confidence of each row and whether its prediction is correct. Empty bins are left out."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    rows = np.bincount(place, minlength=bins)
    used = rows > 0
    mean_confidence, accuracy = (np.bincount(place, x, bins)[used] / rows[used] for x in (confidence, correct))
    return Reliability(mean_confidence, accuracy, rows[used])
