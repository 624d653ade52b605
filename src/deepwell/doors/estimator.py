"""What the scikit-learn estimators share: their parameters, and the way to ``deepwell.fit``."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deepwell.fits.fit import fit
from deepwell.predict.prediction import Prediction

NOT_SETTINGS = ("preset", "init", "checkpoint", "random_state", "verbose", "callbacks")


class DeepGPEstimator(BaseEstimator):
    """Parameters left at None take their values from ``preset``: "default", "best", "paper" or "quick".

    ``deepwell.Settings`` says what each one means; ``n_`` here is ``num_`` there. ``fixed`` names parameters that stay
    at their start, ``init`` is a fitted model or estimator to start from, ``checkpoint`` a folder from which an
    interrupted fit goes on, ``random_state`` an int, a RandomState or None, ``callbacks`` functions
    of a ``deepwell.Event``.
    """

    def __init__(
        self,
        depth: int | None = None,
        width: Any = None,
        n_inducing: Any = None,
        kernel: Any = None,
        likelihood: str | None = None,
        inference: str | None = None,
        objective: str | None = None,
        preset: str = "default",
        n_chains: int | None = None,
        burn_in: int | None = None,
        n_samples: int | None = None,
        spacing: int | None = None,
        batch_size: int | None = None,
        window_size: int | None = None,
        inner_samples: int | None = None,
        priors: bool | None = None,
        learning_rate: float | None = None,
        step_size: float | None = None,
        friction: float | None = None,
        sampling_friction: float | None = None,
        subtract_gradient_noise: bool | None = None,
        fixed: Any = None,
        n_variance_inducing: Any = None,
        hidden_units: Any = None,
        dsvi_start: int | None = None,
        input_scaling: str | None = None,
        init: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: bool = False,
        callbacks: Any = None,
        control_variates: bool | None = None,
    ) -> None:
        self.depth = depth
        self.width = width
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.objective = objective
        self.preset = preset
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.n_samples = n_samples
        self.spacing = spacing
        self.batch_size = batch_size
        self.window_size = window_size
        self.inner_samples = inner_samples
        self.priors = priors
        self.learning_rate = learning_rate
        self.step_size = step_size
        self.friction = friction
        self.sampling_friction = sampling_friction
        self.subtract_gradient_noise = subtract_gradient_noise
        self.fixed = fixed
        self.n_variance_inducing = n_variance_inducing
        self.hidden_units = hidden_units
        self.dsvi_start = dsvi_start
        self.input_scaling = input_scaling
        self.init = init
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.control_variates = control_variates

    def predict_dist(self, X: Any) -> Prediction:
        """The full predictive distribution."""
        inputs = self._validated(X)
        return self.model_.predict_dist(inputs)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one ``.deepwell`` file, which ``deepwell.load`` reads."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    def _fit(self, inputs: Any, targets: np.ndarray, likelihood: str, classes: Any = None) -> None:
        """Fit validated inputs and targets."""
        settings = {
            name.replace("n_", "num_", 1) if name.startswith("n_") else name: value
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
            callbacks=self.callbacks,
            **{**settings, "likelihood": likelihood if self.init is None else self.likelihood},
        )

    def _validated(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        return validate_data(self, X, dtype=np.float64, reset=False)
