"""``DeepGPClassifier``: a scikit-learn classifier around ``deepwell.fit``."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from deepwell.data.response import read_response
from deepwell.data.tables import is_frame, to_matrix
from deepwell.doors.estimator import DeepGPEstimator
from deepwell.errors import InputError
from deepwell.fits.settings import CLASSES
from deepwell.model.likelihoods.registry import response_kind


class DeepGPClassifier(ClassifierMixin, DeepGPEstimator):
    """Deep Gaussian process classification with a sampled posterior.

    ``likelihood`` is "bernoulli" (the default for two classes), "robust-max" (the default for more), "softmax" or
    "bernoulli-logit". ``DeepGPEstimator`` describes the other parameters and the attributes after ``fit``; ``classes_``
    are the labels in order.
    """

    def fit(self, X: Any, y: Any) -> "DeepGPClassifier":
        """Fit to X (rows, columns) and labels y (rows,): text, truth values or numbers."""
        likelihood = "classes" if self.likelihood is None else self.likelihood
        if isinstance(likelihood, str) and likelihood not in (*CLASSES, "classes"):
            raise InputError(f"likelihood={likelihood!r} is not for classification: choose from {', '.join(CLASSES)}")
        if response_kind(likelihood) != "classes":
            raise InputError(
                f"{type(likelihood).__name__} is a likelihood of {response_kind(likelihood)}, not of classes"
            )
        if is_frame(X):
            to_matrix(X, "X")  # its error names the column, scikit-learn's does not
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        labels = column_or_1d(labels, warn=True)
        response = read_response(labels, "classes")
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        self._fit(inputs, response.original, likelihood, response.classes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, -1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of ``classes_``, (rows, classes)."""
        inputs = self._validate_inputs(X)
        return self.model_.predict_proba(inputs)
