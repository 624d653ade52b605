"""A fitted model: predictions in the user's units, and what is known about the fit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.errors import InputError
from deepwell.data.scaling import Scaling
from deepwell.data.tables import align_columns, check_columns, is_frame, to_matrix
from deepwell.inference.posteriors import Posterior, Variational
from deepwell.interfaces.settings import Settings
from deepwell.model.likelihoods import Described
from deepwell.predict.classes import ClassProbabilities
from deepwell.predict.diagnostics import Diagnosis, diagnose
from deepwell.predict.posterior import descriptions, functions
from deepwell.predict.prediction import Prediction, prediction

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
        return self._prediction(descriptions(self.posterior, self._standardised(X)))

    def predict_blocks(self, X: Any) -> Iterator[Prediction]:
        """The predictive distribution of consecutive blocks of rows."""
        for block in descriptions(self.posterior, self._standardised(X)):
            yield self._prediction([block])

    def save(self, path: str | Path) -> None:
        """Write one ``.deepwell`` file: safetensors with plain metadata, no pickle."""
        from deepwell.interfaces.files import save

        save(self, path)

    def diagnose(self, X: Any) -> Diagnosis:
        """Do the chains agree on the function's values at the rows of X? See ``Diagnosis``."""
        if isinstance(self.posterior, Variational):
            raise InputError(f"{self.settings.inference} has no chains, so there is nothing to diagnose")
        means = np.concatenate([mean for mean, _ in functions(self.posterior, self._standardised(X))], axis=1)
        return diagnose(means.reshape(*self.posterior.draws, -1))

    def troubles(self, least_share: float = 0.0) -> str:
        """What went wrong numerically during the fit, in one sentence; empty if nothing did.

        Jitter that grew in less than ``least_share`` of the iterations, which is common and harmless, is left out.
        """
        found = []
        sampled_by_nuts = self.settings.inference == "nuts"
        if self.refused_moves and sampled_by_nuts:
            found.append(f"{self.refused_moves} transitions diverged")
        moves = 0 if sampled_by_nuts else self.refused_moves
        for count, kind in ((moves, "sampler"), (self.refused_updates, "hyperparameter")):
            if count:
                found.append(f"{count} {kind} steps were refused because they left the finite numbers")
        if moves:
            found[0] += ", each halving the step size of its chain"
        for layer, count in enumerate(self.jitter_grew):
            if count > least_share * self.trace[-1][0]:
                found.append(f"the jitter of layer {layer + 1} had to grow in {count} iterations")
        if self.jitter_retries:
            found.append(f"K_ZZ needed {10**self.jitter_retries} times the usual jitter at the end")
        return "; ".join(found)

    def _prediction(self, blocks: Iterable[Described]) -> Prediction:
        return prediction(blocks, self.y_scaling, self.single_target, self.classes)

    def _standardised(self, X: Any) -> np.ndarray:
        if self.named and is_frame(X):
            X = align_columns(X, self.feature_names)
        matrix, _ = to_matrix(X, "X")
        check_columns(self.feature_names, matrix.shape[1])
        return np.clip(self.x_scaling.standardise(matrix), -FARTHEST, FARTHEST)
