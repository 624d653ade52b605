"""Can the error bars be trusted? Judged on rows the fit has not seen."""

from typing import NamedTuple

import numpy as np

from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.count_mixture import CountMixture
from deepwell.predict.mixture import Mixture

LEVELS = np.linspace(0.0, 1.0, 101)
BINS = 10


class Calibration(NamedTuple):
    """Of numbers and counts: where y fell in its predictive distribution, and what follows from it.

    pit: F(y) of every value, uniform on (0, 1) if the predictions are honest; coverage: share of y inside the central
    interval of each of ``levels``; sharpness: mean width of the 90 % interval, in the units of y.
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
        said = ", ".join(f"{level:.0%} intervals hold {share:.0%}" for level, share in at.items())
        gap = at[0.9] - 0.9
        tolerance = 2.0 * np.sqrt(0.9 * 0.1 / len(self.pit))
        verdict = "honest" if abs(gap) <= tolerance else ("too wide" if gap > 0.0 else "too narrow")
        return f"{said}: the error bars are {verdict} (of {len(self.pit)} values)"


def calibration(prediction: Mixture | CountMixture, y: np.ndarray) -> Calibration:
    """Judge predictions against what was observed."""
    values = np.ravel(pit(prediction, y))
    central = np.abs(2.0 * values - 1.0)
    lower, upper = prediction.interval(0.9)
    coverage = np.asarray([np.mean(central <= level) for level in LEVELS])
    return Calibration(values, LEVELS, coverage, float(np.mean(upper - lower)))


def pit(prediction: Mixture | CountMixture, y: np.ndarray) -> np.ndarray:
    """Probability integral transform F(y); of counts its middle, F(y - 1) + P(y) / 2."""
    if isinstance(prediction, CountMixture):
        return 0.5 * (prediction.cdf(y) + prediction.cdf(np.asarray(y) - 1.0))
    return prediction.cdf(y)


class Reliability(NamedTuple):
    """Of classes, in bins of confidence: the mean confidence, the share that was right, and how many rows."""

    confidence: np.ndarray
    accuracy: np.ndarray
    rows: np.ndarray


def reliability(prediction: ClassProbabilities, y: np.ndarray, bins: int = BINS) -> Reliability:
    """The bins of a reliability diagram; empty ones are left out."""
    right = prediction.is_right(y)
    place = np.minimum((prediction.confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    held = count > 0
    sums = (np.bincount(place, values, bins)[held] for values in (prediction.confidence, right))
    confidence, accuracy = (total / count[held] for total in sums)
    return Reliability(confidence, accuracy, count[held])
