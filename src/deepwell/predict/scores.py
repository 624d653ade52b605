"""Scores of predictive distributions on held-out rows."""

from typing import Any

import numpy as np

from deepwell.predict.calibration import reliability
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.prediction import Prediction

BINS = 15


def scores(prediction: Prediction, y: Any) -> dict[str, float]:
    """Numbers and counts: mean log density, root mean squared error, mean CRPS, share of y in the 95 % interval.

    Classes: mean log probability, accuracy, Brier score, expected calibration error.
    """
    log_likelihood = {"test_log_likelihood": float(np.mean(prediction.log_prob(y)))}
    if isinstance(prediction, ClassProbabilities):
        return log_likelihood | {
            "accuracy": float(np.mean(prediction.is_right(y))),
            "brier": brier(prediction, y),
            "calibration_error": calibration_error(prediction, y),
        }
    lower, upper = prediction.interval(0.95)
    return log_likelihood | {
        "rmse": float(np.sqrt(np.mean((prediction.mean - y) ** 2))),
        "crps": float(np.mean(prediction.crps(y))),
        "coverage_95": float(np.mean((y >= lower) & (y <= upper))),
    }


def brier(prediction: ClassProbabilities, y: Any) -> float:
    """Mean over rows of sum_c (P(c) - 1{y = c})^2, between 0 and 2 (Brier 1950)."""
    truth = np.arange(len(prediction.classes)) == prediction.codes(y)[:, None]
    return float(np.mean(np.sum((prediction.probabilities - truth) ** 2, -1)))


def calibration_error(prediction: ClassProbabilities, y: Any, bins: int = BINS) -> float:
    """Expected calibration error: sum_b (n_b / n) |accuracy_b - confidence_b| over equal bins of confidence."""
    found = reliability(prediction, y, bins)
    return float(np.sum(found.rows * np.abs(found.accuracy - found.confidence)) / len(prediction))
