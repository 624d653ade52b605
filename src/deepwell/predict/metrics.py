"""Scores of predictive distributions on held-out rows."""

import numpy as np

from deepwell.predict.mixture import Mixture

SCORES = ("test_log_likelihood", "rmse", "crps", "coverage_95")


def scores(prediction: Mixture, y: np.ndarray) -> dict[str, float]:
    """Mean log density, root mean squared error, mean CRPS and the share of y in the 95 % interval."""
    lower, upper = prediction.interval(0.95)
    return {
        "test_log_likelihood": float(np.mean(prediction.log_prob(y))),
        "rmse": float(np.sqrt(np.mean((prediction.mean - y) ** 2))),
        "crps": float(np.mean(prediction.crps(y))),
        "coverage_95": float(np.mean((y >= lower) & (y <= upper))),
    }
