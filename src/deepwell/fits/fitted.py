"""A fitted model: predictions in the user's units, and what is known about the fit."""

import dataclasses
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.response import read_response
from deepwell.data.scaling import Scaling
from deepwell.data.tables import require_same_rows, to_matrix
from deepwell.errors import InputError
from deepwell.fits.presets import make_settings
from deepwell.fits.settings import Settings
from deepwell.inference.posterior import Posterior
from deepwell.inference.registry import method_named
from deepwell.model.likelihoods import Marginal
from deepwell.predict.blocks import functions, log_densities, marginals
from deepwell.predict.calibration import Calibration, Reliability
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.conformal import conformal_interval, conformity
from deepwell.predict.diagnostics import Diagnosis, diagnose
from deepwell.predict.distribution import NumberPrediction
from deepwell.predict.prediction import Prediction, average_over_samples
from deepwell.predict.relevance import Relevance, hidden_layers, relevance
from deepwell.predict.slices import InputSlice, rows_along
from deepwell.store.model_file import read_model, rejecting_damage, write_model

FARTHEST = 1e15
"""Standardised inputs are cut here: farther ones would overflow float32, and all are equally far from the data."""


@dataclass(frozen=True)
class FittedModel:
    """What ``deepwell.fit`` returns and ``deepwell.load`` restores."""

    posterior: Posterior
    x_scaling: Scaling
    y_scaling: Scaling
    feature_names: tuple[str, ...]
    named: bool
    """Whether X had column names: then a DataFrame is matched by name, otherwise by position."""
    target_names: tuple[str, ...]
    single_target: bool
    settings: Settings
    preset: str
    seed: int
    num_rows: int
    trace: tuple[tuple[int, float], ...]
    """(iteration, mean training log-likelihood in y's units) after every chunk."""
    refused_moves: int
    refused_updates: int
    jitter_retries: int
    seconds: float
    feature_types: tuple[str, ...] = ()
    """What each column of X held before it was converted."""
    jitter_grew: tuple[int, ...] = ()
    """For each layer, in how many iterations the factorisation of K_ZZ needed more than the usual jitter."""
    classes: tuple[Any, ...] | None = None
    """The labels, if y is a class."""
    conformity: np.ndarray | None = None
    """Scores of calibration rows, (rows, targets), if there were any."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean, and standard deviation if asked, shaped like y, block by block of rows; of classes the most
        probable one."""
        if self.classes is not None:
            if return_std:
                raise InputError("classes have no standard deviation: use predict_proba or predict_dist")
            return np.asarray(self.classes)[np.argmax(self.predict_proba(X), -1)]
        parts = [(block.mean, block.std if return_std else None) for block in self.predict_blocks(X)]  # type: ignore[union-attr]
        mean = np.concatenate([mean for mean, _ in parts])
        if not return_std:
            return mean
        return mean, np.concatenate([std for _, std in parts if std is not None])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of ``classes``, (rows, classes)."""
        if self.classes is None:
            raise InputError(f"`predict_proba` needs a classification target; {self.target_names[0]!r} is numeric")
        prediction = self.predict_dist(X)
        assert isinstance(prediction, ClassProbabilities)
        return prediction.probabilities

    def predict_dist(self, X: Any) -> Prediction:
        """The full predictive distribution of every row: a ``Mixture``, a ``CountMixture`` or ``ClassProbabilities``.

        With Gaussian noise it holds 8 bytes a row and posterior sample. For tables larger than that allows,
        ``predict_blocks`` yields the same block by block.
        """
        return self._prediction(marginals(self.posterior, self._standardised(X)))

    def predict_blocks(self, X: Any) -> Iterator[Prediction]:
        """The predictive distribution of consecutive blocks of rows."""
        for block in marginals(self.posterior, self._standardised(X)):
            yield self._prediction([block])

    def predict_interval(self, X: Any, level: float = 0.95, conformal: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals that hold y with probability ``level``.

        ``conformal`` stretches or shrinks the model's own intervals by what ``calibrated`` or ``fit(calibration=...)``
        saw on rows kept out of the fit: coverage is then guaranteed on rows like those, whatever the model.
        """
        prediction = self._numeric(X, "`predict_interval`")
        if not conformal:
            return prediction.interval(level)
        if self.conformity is None:
            raise InputError("conformal intervals need calibration rows: fit(..., calibration=0.2) or model.calibrated")
        return conformal_interval(prediction, self.conformity, level)

    def calibrated(self, X: Any, y: Any) -> "FittedModel":
        """The same model, calibrated for conformal intervals on rows that the fit has not seen."""
        prediction = self._numeric(X, "`calibrated`")
        return dataclasses.replace(self, conformity=conformity(prediction, self._observed(y)))

    def calibration(self, X: Any, y: Any) -> Calibration | Reliability:
        """Can the error bars be trusted? On rows that the fit has not seen. See ``Calibration``, ``Reliability``."""
        return self.predict_dist(X).calibration(self._observed(y))

    def relevance(self, X: Any) -> Relevance:
        """How much each input matters at the rows of X. See ``Relevance``."""
        return relevance(self.posterior, self._standardised(X))

    def slice_along(self, X: Any, name: str | int) -> InputSlice:
        """The prediction along one input, by name or number, the others at their medians over X. See ``InputSlice``."""
        known = name in self.feature_names if isinstance(name, str) else 0 <= name < len(self.feature_names)
        if not known:
            raise InputError(f"there is no input {name!r}: choose from {', '.join(self.feature_names)}")
        column = self.feature_names.index(name) if isinstance(name, str) else name
        rows = rows_along(self.input_matrix(X), column)
        return InputSlice(rows[:, column], self.predict_dist(rows), self.feature_names[column], self.target_names)

    def hidden_layers(self, X: Any) -> list[np.ndarray]:
        """Mean outputs of each hidden layer under every posterior sample, (samples, rows, width) each."""
        return hidden_layers(self.posterior, self._standardised(X))

    def function_values(self, X: Any) -> np.ndarray:
        """Mean of the latent functions under every posterior sample, (samples, rows, latents), in standard units."""
        return np.concatenate([mean for mean, _ in functions(self.posterior, self._standardised(X))], axis=1)

    def log_likelihoods(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) under every posterior sample, (samples, rows), in the units of y."""
        values = read_response(y, "numbers" if self.classes is None else "classes", self.classes).values
        inputs = self._standardised(X)
        require_same_rows(inputs, values)
        standardised = log_densities(self.posterior, inputs, self.y_scaling.standardise(values))
        return standardised - np.sum(np.log(self.y_scaling.scale))

    def sampled_theta(self) -> dict[str, np.ndarray]:
        """Hyperparameters by name, one value a posterior sample; empty if all samples share theta."""
        return {name: np.asarray(values) for name, values in self.posterior.sampled_parameters().items()}

    def to_arviz(self, X: Any, y: Any = None) -> Any:
        """Function values at X, sampled hyperparameters and, with y, log-likelihoods in the form of ArviZ."""
        from deepwell.predict.arviz import to_arviz

        traces = {name: self._by_chain(trace) for name, trace in self.sampled_theta().items()}
        log_likelihoods = None if y is None else self._by_chain(self.log_likelihoods(X, y))
        return to_arviz(self._by_chain(self.function_values(X)), traces, log_likelihoods)

    def leave_one_out(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """log p(y_i | the other rows) of every row of the fit, and the Pareto shape k of its estimate. Needs ArviZ."""
        from deepwell.predict.arviz import leave_one_out

        return leave_one_out(self._by_chain(self.log_likelihoods(X, y)))

    def save(self, path: str | Path) -> None:
        """Write one ``.deepwell`` file: safetensors with plain metadata, no pickle.

        Kernels, likelihoods and other classes from outside the package are named by their import paths.
        """
        write_model(Path(path), {**_by_field(self), "settings": _by_field(self.settings)})

    def diagnose(self, X: Any) -> Diagnosis:
        """Do the chains agree on the function's values at the rows of X? See ``Diagnosis``."""
        if not self.posterior.has_chains:
            raise InputError(f"{self.settings.inference} has no chains, so there is nothing to diagnose")
        from deepwell.predict.arviz import effective_sizes

        values = self.function_values(X).reshape(*self.posterior.draws, -1)
        return diagnose(values, effective_sizes(values))

    def numerical_issues(self, least_share: float = 0.0) -> str:
        """What went wrong numerically during the fit, in one sentence; empty if nothing did.

        Jitter that grew in less than ``least_share`` of the iterations, which is common and harmless, is left out.
        """
        issues = []
        if self.refused_moves:
            issues.append(f"{self.refused_moves} {method_named(self.settings.inference).traits.refused_move}")
        if self.refused_updates:
            issues.append(
                f"{self.refused_updates} hyperparameter steps were refused because they left the finite numbers"
            )
        for layer, count in enumerate(self.jitter_grew):
            if count > least_share * self.trace[-1][0]:
                issues.append(f"the jitter of layer {layer + 1} had to grow in {count} iterations")
        if self.jitter_retries:
            issues.append(f"K_ZZ needed {10**self.jitter_retries} times the usual jitter at the end")
        return "; ".join(issues)

    def troubles(self, least_share: float = 0.0) -> str:
        """The old name of ``numerical_issues``."""
        warnings.warn("troubles() is now numerical_issues(); it goes with version 0.7", FutureWarning, stacklevel=2)
        return self.numerical_issues(least_share)

    def _numeric(self, X: Any, what: str) -> NumberPrediction:
        prediction = self.predict_dist(X)
        if not isinstance(prediction, NumberPrediction):
            raise InputError(f"{what} needs a numeric target; {self.target_names[0]!r} is a class")
        return prediction

    def _observed(self, y: Any) -> np.ndarray:
        """y as predictions are compared with it; labels may be new ones."""
        if self.classes is not None:
            return np.ravel(np.asarray(y))
        values = to_matrix(y, "y").values
        return values[:, 0] if self.single_target else values

    def _by_chain(self, values: np.ndarray) -> np.ndarray:
        """(samples, ...) -> (chains, draws, ...)."""
        return values.reshape(*self.posterior.draws, *values.shape[1:])

    def _prediction(self, blocks: Iterable[Marginal]) -> Prediction:
        return average_over_samples(blocks, self.y_scaling, self.single_target, self.classes)

    def input_matrix(self, X: Any) -> np.ndarray:
        """X as numbers, its columns in the order of the fit."""
        values, expected = to_matrix(X, "X", self.feature_names if self.named else None).values, self.feature_names
        if values.shape[1] != len(expected):
            raise InputError(
                f"X has {values.shape[1]} columns, but the model was fitted on {len(expected)}: {', '.join(expected)}"
            )
        return values

    def _standardised(self, X: Any) -> np.ndarray:
        return np.clip(self.x_scaling.standardise(self.input_matrix(X)), -FARTHEST, FARTHEST)


def load(path: str | Path, classes: Iterable[type] = ()) -> FittedModel:
    """Read a model file; predictions equal those of the model that was saved.

    A file never causes an import. Classes from outside the package that it names, such as a kernel of one's own, must
    be imported already or be among ``classes``.
    """
    path = Path(path)
    fields = read_model(path, classes)
    with rejecting_damage(path):
        settings = make_settings(**fields.pop("settings"))
    return FittedModel(settings=settings, **fields)


def _by_field(record: FittedModel | Settings) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
