"""What the scikit-learn estimators share: their parameters, and the way to ``deepwell.fit``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deepwell.fits.events import Callback
from deepwell.fits.fit import fit
from deepwell.predict.prediction import Prediction

NOT_SETTINGS = ("preset", "init", "checkpoint", "random_state", "verbose", "callbacks")


@dataclass(eq=False, repr=False, match_args=False)
class DeepGPEstimator(BaseEstimator):
    """The parameters of both estimators.

    Every setting of ``deepwell.Settings`` is a parameter, with ``n_`` for ``num_``; its meaning is described there.
    A setting left at None takes its value from ``preset``: "default", "best", "paper" or "quick". The rest:

    - ``init``: a fitted model or estimator to start from;
    - ``checkpoint``: a folder; an interrupted fit continues from its last checkpoint there;
    - ``random_state``: an int, a ``RandomState`` or None;
    - ``verbose``: whether to show progress;
    - ``callbacks``: functions that are called with a ``deepwell.Event`` after every chunk of iterations.

    After ``fit``: ``model_`` (a ``deepwell.FittedModel``), ``n_features_in_``, ``feature_names_in_``.
    """

    depth: int | None = None
    width: int | Sequence[int] | None = None
    n_inducing: int | Sequence[int] | None = None
    kernel: Any = None
    likelihood: Any = None
    inference: str | None = None
    objective: str | None = None
    preset: str = "default"
    n_chains: int | None = None
    burn_in: int | None = None
    n_samples: int | None = None
    spacing: int | None = None
    batch_size: int | None = None
    window_size: int | None = None
    inner_samples: int | None = None
    priors: bool | None = None
    learning_rate: float | Sequence[float] | None = None
    step_size: float | Sequence[float] | None = None
    friction: float | Sequence[float] | None = None
    sampling_friction: float | None = None
    subtract_gradient_noise: bool | None = None
    fixed: Sequence[str] | None = None
    n_variance_inducing: int | Sequence[int] | None = None
    hidden_units: Sequence[int] | None = None
    dsvi_start: int | None = None
    input_scaling: str | None = None
    init: Any = None
    checkpoint: str | Path | None = None
    random_state: Any = None
    verbose: bool = False
    callbacks: Sequence[Callback] | None = None
    control_variates: bool | None = None
    shortest_window: int | None = None
    hidden_variance: float | None = None
    output_variance: float | None = None
    noise_variance: float | None = None
    e_steps: int | None = None
    e_samples: int | None = None
    m_steps: int | None = None
    jitter: float | None = None
    local: bool | str | None = None

    def predict_dist(self, X: Any) -> Prediction:
        """The full predictive distribution."""
        inputs = self._validate_inputs(X)
        return self.model_.predict_dist(inputs)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a ``.deepwell`` file; ``deepwell.load`` reads it."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    def _fit(self, inputs: Any, targets: np.ndarray, likelihood: Any, classes: Any = None) -> None:
        """Fit validated inputs and targets."""
        settings = {
            "num_" + name.removeprefix("n_") if name.startswith("n_") else name: value
            for name, value in self.get_params(deep=False).items()
            if name not in NOT_SETTINGS
        }
        table: Any = inputs
        if hasattr(self, "feature_names_in_"):
            import pandas as pd

            table = pd.DataFrame(inputs, columns=self.feature_names_in_)
        self.model_ = fit(
            table,
            targets,
            preset=self.preset,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            classes=classes,
            init=self.init,
            checkpoint=self.checkpoint,
            verbose=bool(self.verbose),
            callbacks=self.callbacks or (),
            **{**settings, "likelihood": likelihood if self.init is None else self.likelihood},
        )

    def _validate_inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        return validate_data(self, X, dtype=np.float64, reset=False)
