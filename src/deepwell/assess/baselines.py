"""Simple models to compare with: a deep GP must beat them to be worth its time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deepwell.data.scaling import Scaling
from deepwell.fits.fit import fit
from deepwell.fits.settings import CLASSES
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.mixture import Mixture
from deepwell.predict.prediction import Prediction

Predict = Callable[[np.ndarray], Prediction]
Fit = Callable[[np.ndarray, np.ndarray], Predict]
PENALTIES = np.logspace(-6, 3, 37)
"""Of ridge regression, per row."""
TREES = 200
LEAST_PROBABILITY = 1e-6
"""Without a floor one confident error of a forest would score minus infinity."""


def baseline_scores(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, likelihood: str, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Scores of the mean (class frequencies), ridge (logistic) regression, a random forest and a one-layer GP."""
    baselines: dict[str, Fit] = {"mean": mean, "ridge regression": ridge, "random forest": forest(seed)}
    if likelihood in CLASSES:
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
        trees = RandomForestClassifier(TREES, random_state=seed)
        baselines = {
            "class frequencies": class_frequencies,
            "logistic regression": classifier(linear),
            "random forest": classifier(trees),
        }
    result = {name: fit_baseline(X, y)(X_test).scores(y_test) for name, fit_baseline in baselines.items()}
    one_layer = fit(X, y, depth=1, preset="quick", likelihood=likelihood, seed=seed)
    return result | {"one-layer GP (quick)": one_layer.predict_dist(X_test).scores(y_test)}


def mean(X: np.ndarray, y: np.ndarray) -> Predict:
    """The mean and variance of y, whatever the inputs."""
    return lambda new: with_constant_noise(np.full(len(new), np.mean(y)), float(np.var(y)))


def ridge(X: np.ndarray, y: np.ndarray) -> Predict:
    """Ridge regression on standardised inputs; leave-one-out errors choose the penalty and are its error bar."""
    model = make_pipeline(StandardScaler(), RidgeCV(len(y) * PENALTIES, store_cv_results=True)).fit(X, y)
    noise = float(np.min(np.mean(model[-1].cv_results_, axis=0)))
    return lambda new: with_constant_noise(model.predict(new), noise)


def forest(seed: int) -> Fit:
    """A random forest; each row's error is that of the trees that did not see it."""

    def fit_forest(X: np.ndarray, y: np.ndarray) -> Predict:
        model = RandomForestRegressor(TREES, oob_score=True, random_state=seed).fit(X, y)
        noise = float(np.mean((y - model.oob_prediction_) ** 2))
        return lambda new: with_constant_noise(model.predict(new), noise)

    return fit_forest


def class_frequencies(X: np.ndarray, y: np.ndarray) -> Predict:
    """The share of each class in y, whatever the inputs."""
    classes, counts = np.unique(y, return_counts=True)
    return lambda new: class_probabilities(np.tile(counts / len(y), (len(new), 1)), classes)


def classifier(model: Any) -> Fit:
    """A classifier of scikit-learn."""

    def fit_classifier(X: np.ndarray, y: np.ndarray) -> Predict:
        model.fit(X, y)
        return lambda new: class_probabilities(model.predict_proba(new), model.classes_)

    return fit_classifier


def with_constant_noise(mean: np.ndarray, noise_variance: float) -> Mixture:
    """A prediction whose errors have one variance everywhere."""
    means = np.asarray(mean, np.float64)[None, :, None]
    unscaled = Scaling(np.zeros(1), np.ones(1))
    return Mixture(means, np.zeros_like(means), np.full((1, 1), noise_variance), unscaled, True)


def class_probabilities(probabilities: np.ndarray, classes: np.ndarray) -> ClassProbabilities:
    """Probabilities with a floor."""
    floored = np.clip(probabilities, LEAST_PROBABILITY, 1.0)
    floored /= np.sum(floored, -1, keepdims=True)
    return ClassProbabilities(floored, np.zeros(len(floored)), classes.tolist())
