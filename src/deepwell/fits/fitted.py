"""A fitted model: predictions in the user's units, and what is known about the fit."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.response import as_classes
from deepwell.data.scaling import Scaling
from deepwell.data.tables import align_columns, check_columns, is_frame, require_same_rows, to_matrix
from deepwell.errors import InputError
from deepwell.fits.presets import make_settings
from deepwell.fits.settings import Settings
from deepwell.inference.posterior import Posterior
from deepwell.inference.registry import method_named
from deepwell.model.likelihoods import Marginal
from deepwell.predict.blocks import functions, log_densities, marginals
from deepwell.predict.calibration import Calibration, Reliability, calibration, reliability
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.conformal import conformal_interval, conformity
from deepwell.predict.count_mixture import CountMixture
from deepwell.predict.diagnostics import Diagnosis, diagnose
from deepwell.predict.mixture import Mixture
from deepwell.predict.prediction import Prediction, prediction
from deepwell.predict.relevance import Relevance, hidden_layers, relevance
from deepwell.predict.slices import Slice, rows_along
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
            raise InputError(f"probabilities of classes are not to be had: {self.target_names[0]!r} is a number")
        found = self.predict_dist(X)
        assert isinstance(found, ClassProbabilities)
        return found.probabilities

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
        found = self._of_numbers(self.predict_dist(X), "intervals")
        if not conformal:
            return found.interval(level)
        if self.conformity is None:
            raise InputError("conformal intervals need calibration rows: fit(..., calibration=0.2) or model.calibrated")
        return conformal_interval(found, self.conformity, level)

    def calibrated(self, X: Any, y: Any) -> "FittedModel":
        """The same model, calibrated for conformal intervals on rows that the fit has not seen."""
        found = self._of_numbers(self.predict_dist(X), "conformal intervals")
        values, _ = to_matrix(y, "y")
        return dataclasses.replace(self, conformity=conformity(found, values[:, 0] if self.single_target else values))

    def calibration(self, X: Any, y: Any) -> Calibration | Reliability:
        """Can the error bars be trusted? On rows that the fit has not seen. See ``Calibration``, ``Reliability``."""
        found = self.predict_dist(X)
        if isinstance(found, ClassProbabilities):
            return reliability(found, np.ravel(np.asarray(y)))
        values, _ = to_matrix(y, "y")
        return calibration(found, values[:, 0] if self.single_target else values)

    def relevance(self, X: Any) -> Relevance:
        """How much each input matters at the rows of X. See ``Relevance``."""
        return relevance(self.posterior, self._standardised(X))

    def slice_along(self, X: Any, name: str | int) -> Slice:
        """The prediction along one input, by name or number, the others at their medians over X. See ``Slice``."""
        known = name in self.feature_names if isinstance(name, str) else 0 <= name < len(self.feature_names)
        if not known:
            raise InputError(f"there is no input {name!r}: choose from {', '.join(self.feature_names)}")
        column = self.feature_names.index(name) if isinstance(name, str) else name
        rows = rows_along(self.input_matrix(X), column)
        return Slice(rows[:, column], self.predict_dist(rows), self.feature_names[column], self.target_names)

    def hidden_layers(self, X: Any) -> list[np.ndarray]:
        """Mean outputs of each hidden layer under every posterior sample, (samples, rows, width) each."""
        return hidden_layers(self.posterior, self._standardised(X))

    def function_values(self, X: Any) -> np.ndarray:
        """Mean of the latent functions under every posterior sample, (samples, rows, latents), in standard units."""
        return np.concatenate([mean for mean, _ in functions(self.posterior, self._standardised(X))], axis=1)

    def log_likelihoods(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) under every posterior sample, (samples, rows), in the units of y."""
        if self.classes is not None:
            values = as_classes(y, self.classes).values
        else:
            values, _ = to_matrix(y, "y")
        inputs = self._standardised(X)
        require_same_rows(inputs, values)
        found = log_densities(self.posterior, inputs, self.y_scaling.standardise(values))
        return found - np.sum(np.log(self.y_scaling.scale))

    def sampled_theta(self) -> dict[str, np.ndarray]:
        """Hyperparameters by name, one value a posterior sample; empty if all samples share theta."""
        return {name: np.asarray(values) for name, values in self.posterior.sampled_parameters().items()}

    def to_arviz(self, X: Any, y: Any = None) -> Any:
        """Function values at X, sampled hyperparameters, log-likelihood of y: for ArviZ. See ``interfaces.arviz``."""
        from deepwell.predict.arviz import to_arviz

        return to_arviz(self, X, y)

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

    def troubles(self, least_share: float = 0.0) -> str:
        """What went wrong numerically during the fit, in one sentence; empty if nothing did.

        Jitter that grew in less than ``least_share`` of the iterations, which is common and harmless, is left out.
        """
        found = []
        if self.refused_moves:
            found.append(f"{self.refused_moves} {method_named(self.settings.inference).traits.refused_move}")
        if self.refused_updates:
            found.append(
                f"{self.refused_updates} hyperparameter steps were refused because they left the finite numbers"
            )
        for layer, count in enumerate(self.jitter_grew):
            if count > least_share * self.trace[-1][0]:
                found.append(f"the jitter of layer {layer + 1} had to grow in {count} iterations")
        if self.jitter_retries:
            found.append(f"K_ZZ needed {10**self.jitter_retries} times the usual jitter at the end")
        return "; ".join(found)

    def _of_numbers(self, found: Prediction, what: str) -> Mixture | CountMixture:
        if isinstance(found, ClassProbabilities):
            raise InputError(f"{what} are of numbers, and {self.target_names[0]!r} is a class")
        return found

    def _prediction(self, blocks: Iterable[Marginal]) -> Prediction:
        return prediction(blocks, self.y_scaling, self.single_target, self.classes)

    def input_matrix(self, X: Any) -> np.ndarray:
        """X as numbers, its columns in the order of the fit."""
        if self.named and is_frame(X):
            X = align_columns(X, self.feature_names)
        matrix, _ = to_matrix(X, "X")
        check_columns(self.feature_names, matrix.shape[1])
        return matrix

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
