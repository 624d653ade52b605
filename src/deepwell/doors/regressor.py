"""``DeepGPRegressor``: a scikit-learn regressor around ``deepwell.fit``."""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from deepwell.data.tables import is_frame, to_matrix
from deepwell.doors.estimator import DeepGPEstimator
from deepwell.errors import InputError
from deepwell.fits.settings import COUNTS, NUMBERS
from deepwell.model.likelihoods.registry import response_kind


class DeepGPRegressor(MultiOutputMixin, RegressorMixin, DeepGPEstimator):
    """Deep Gaussian process regression with a sampled posterior.

    ``likelihood`` is "gaussian" (the default), "student-t" for data with outliers, "heteroscedastic" for noise that
    changes with the inputs, or "poisson" for counts. ``DeepGPEstimator`` describes the other parameters and the
    attributes after ``fit``.
    """

    def fit(self, X: Any, y: Any) -> "DeepGPRegressor":
        """Fit to X (rows, columns) and y (rows,) or (rows, targets)."""
        likelihood = "gaussian" if self.likelihood is None else self.likelihood
        if isinstance(likelihood, str) and likelihood not in (*NUMBERS, *COUNTS):
            raise InputError(
                f"likelihood={likelihood!r} is not for regression: choose from {', '.join(NUMBERS + COUNTS)}"
            )
        if response_kind(likelihood) == "classes":
            raise InputError(f"{type(likelihood).__name__} is a likelihood of classes: use DeepGPClassifier")
        if is_frame(X):
            to_matrix(X, "X")  # its error names the column, scikit-learn's does not
        inputs, targets = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self._fit(inputs, targets.astype(np.float64), likelihood)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean; with ``return_std`` also the standard deviation."""
        inputs = self._validate_inputs(X)
        return self.model_.predict(inputs, return_std=return_std)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of y, (rows, [targets,] n_samples), the shape that scikit-learn's GP regressor uses."""
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return np.moveaxis(self.predict_dist(X).sample(n_samples, seed), 0, -1)
