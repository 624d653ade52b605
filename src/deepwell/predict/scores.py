"""Scores as a function, as they were up to version 0.5."""

import warnings
from typing import Any

from deepwell.predict.distribution import PredictiveDistribution


def scores(prediction: PredictiveDistribution, y: Any) -> dict[str, float]:
    """``prediction.scores(y)``."""
    warnings.warn("scores(prediction, y) is now prediction.scores(y); it goes with version 0.7", FutureWarning, 2)
    return prediction.scores(y)
