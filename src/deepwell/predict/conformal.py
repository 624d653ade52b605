"""Split conformal prediction: intervals with guaranteed coverage, whatever the model.

With scores s_i = |y_i - middle_i| / half_i on n rows that the fit has not seen, where middle and half are those of the
model's own central interval, the interval middle +- q half with q the ceil((n + 1) level)-th smallest score holds a
new, exchangeable y with probability of at least ``level`` (Lei, G'Sell, Rinaldo, Tibshirani, Wasserman 2018,
"Distribution-Free Predictive Inference for Regression", section 5.2).
"""

import math

import numpy as np

from deepwell.errors import InputError
from deepwell.predict.distribution import NumberPrediction

OWN_LEVEL = 0.9
"""Level of the model's own interval, which is scaled."""


def conformity(prediction: NumberPrediction, y: np.ndarray) -> np.ndarray:
    """Scores of held-out rows, (rows, targets)."""
    middle, half = _centre(prediction)
    scores = np.abs(np.asarray(y, np.float64) - middle) / half
    return scores.reshape(len(scores), -1)


def conformal_interval(prediction: NumberPrediction, scores: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of intervals that hold each target with probability ``level`` or more."""
    if not 0.0 < level < 1.0:
        raise InputError(f"an interval's level must lie strictly between 0 and 1, not at {level}")
    rank = math.ceil((len(scores) + 1) * level)
    if rank > len(scores):
        raise InputError(
            f"{len(scores)} calibration rows are too few for a level of {level}: "
            f"it needs at least {math.ceil(level / (1.0 - level))}"
        )
    stretch = np.sort(scores, axis=0)[rank - 1]
    middle, half = _centre(prediction)
    reach = half * (stretch[0] if half.ndim == 1 else stretch)
    return middle - reach, middle + reach


def _centre(prediction: NumberPrediction) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of the model's own interval; of counts, it is at least one count wide."""
    lower, upper = prediction.interval(OWN_LEVEL)
    half = 0.5 * (upper - lower)
    return 0.5 * (lower + upper), np.maximum(half, 0.5 * prediction.step)
