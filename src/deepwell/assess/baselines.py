"""Simple models to stand beside: what a deep GP must beat to be worth its time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from deepwell.data.scaling import Scaling, fit_scaling
from deepwell.fits.fit import fit
from deepwell.fits.settings import CLASSES
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.mixture import Mixture
from deepwell.predict.prediction import Prediction
from deepwell.predict.scores import scores

Fitted = Callable[[np.ndarray], Prediction]
PENALTIES = np.logspace(-6, 3, 37)
"""Of ridge regression, for a row."""


def baseline_scores(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, likelihood: str, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Scores of the mean (of classes: their shares), ridge (logistic) regression, a random forest and a one-layer GP.

    Those that need scikit-learn are left out where it is not installed.
    """
    makers = _classifiers(seed) if likelihood in CLASSES else _regressors(seed)
    found = {name: scores(make(X, y)(X_test), y_test) for name, make in makers.items()}
    one_layer = fit(X, y, depth=1, preset="quick", likelihood=likelihood, seed=seed)
    return found | {"one-layer GP (quick)": scores(one_layer.predict_dist(X_test), y_test)}


def with_constant_noise(mean: np.ndarray, noise_variance: float) -> Mixture:
    """The predictions of a model that knows no more of its errors than their variance."""
    means = np.asarray(mean, np.float64)[None, :, None]
    unscaled = Scaling(np.zeros(1), np.ones(1))
    return Mixture(means, np.zeros_like(means), np.full((1, 1), noise_variance), unscaled, True)


def ridge(X: np.ndarray, y: np.ndarray) -> Fitted:
    """Ridge regression on standardised inputs, its penalty chosen by leaving one out, with a constant error bar.

    With X = U S V' centred and scaled, leaving row i out changes its residual e_i to e_i / (1 - 1/n - h_i), where
    h_i = sum_k U_ik^2 S_k^2 / (S_k^2 + penalty): no refit is needed (Hastie et al., Elements, eq. 7.64). The error
    bar is the root mean square of these residuals.
    """
    scaling = fit_scaling(np.asarray(X, np.float64))
    U, S, Vt = np.linalg.svd(scaling.standardise(X), full_matrices=False)
    centre = float(np.mean(y))
    projected = U.T @ (y - centre)

    def left_out(penalty: float) -> float:
        shrunk = S**2 / (S**2 + penalty)
        leverage = U**2 @ shrunk + 1.0 / len(y)
        residuals = (y - centre - U @ (shrunk * projected)) / np.maximum(1.0 - leverage, 1e-9)
        return float(np.mean(residuals**2))

    penalty = min(len(y) * PENALTIES, key=left_out)
    weights = Vt.T @ (S / (S**2 + penalty) * projected)
    noise = left_out(penalty)
    return lambda new: with_constant_noise(centre + scaling.standardise(new) @ weights, noise)


def _mean(X: np.ndarray, y: np.ndarray) -> Fitted:
    return lambda new: with_constant_noise(np.full(len(new), np.mean(y)), float(np.var(y)))


def _shares(X: np.ndarray, y: np.ndarray) -> Fitted:
    classes, counts = np.unique(y, return_counts=True)
    return lambda new: _probabilities(np.tile(counts / len(y), (len(new), 1)), classes)


def _probabilities(probabilities: np.ndarray, classes: np.ndarray) -> ClassProbabilities:
    floor = 1e-6  # a forest that is wholly sure, and wrong, would otherwise score minus infinity
    kept = np.clip(probabilities, floor, 1.0)
    kept /= np.sum(kept, -1, keepdims=True)
    return ClassProbabilities(kept, np.zeros(len(kept)), classes.tolist())


def _regressors(seed: int) -> dict[str, Callable[[np.ndarray, np.ndarray], Fitted]]:
    found: dict[str, Callable[[np.ndarray, np.ndarray], Fitted]] = {"mean": _mean, "ridge regression": ridge}
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError:
        return found

    def forest(X: np.ndarray, y: np.ndarray) -> Fitted:
        """Its errors are judged by the rows each tree did not see."""
        model = RandomForestRegressor(200, oob_score=True, random_state=seed).fit(X, y)
        noise = float(np.mean((y - model.oob_prediction_) ** 2))
        return lambda new: with_constant_noise(model.predict(new), noise)

    return found | {"random forest": forest}


def _classifiers(seed: int) -> dict[str, Callable[[np.ndarray, np.ndarray], Fitted]]:
    found: dict[str, Callable[[np.ndarray, np.ndarray], Fitted]] = {"shares of the classes": _shares}
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        return found

    def learned(model: Any) -> Callable[[np.ndarray, np.ndarray], Fitted]:
        def make(X: np.ndarray, y: np.ndarray) -> Fitted:
            model.fit(X, y)
            return lambda new: _probabilities(model.predict_proba(new), model.classes_)

        return make

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    forest = RandomForestClassifier(200, random_state=seed)
    return found | {"logistic regression": learned(linear), "random forest": learned(forest)}
