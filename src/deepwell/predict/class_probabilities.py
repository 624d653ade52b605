"""A predictive distribution over classes: the probabilities of each posterior sample, averaged."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import xlogy

from deepwell.data.scaling import Scaling
from deepwell.errors import InputError
from deepwell.model.likelihoods import Marginal
from deepwell.predict.calibration import Reliability, reliability
from deepwell.predict.distribution import PredictiveDistribution

SCORE_BINS = 15


class ClassProbabilities(PredictiveDistribution):
    """P(y = c | x) = 1/S sum_s p_s(c | x), for each row x.

    probabilities: (rows, classes), summing to one; expected_entropy: the mean over samples of each row's entropy.
    """

    def __init__(self, probabilities: np.ndarray, expected_entropy: np.ndarray, classes: Sequence[Any]) -> None:
        self.probabilities = probabilities
        self.expected_entropy = expected_entropy
        self.classes = np.asarray(classes)

    @classmethod
    def from_samples(
        cls, blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
    ) -> Self:
        """The mean over the samples, block by block, which needs no memory for the samples of all rows."""
        means = zip(*(mean_and_entropy(block.log_probabilities) for block in blocks), strict=True)
        probabilities, expected_entropy = (np.concatenate(part) for part in means)
        return cls(probabilities, expected_entropy, classes or ())

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"ClassProbabilities of {len(self.classes)} classes for {len(self)} rows"

    @property
    def mode(self) -> np.ndarray:
        """The most probable class."""
        return self.classes[np.argmax(self.probabilities, -1)]

    @property
    def confidence(self) -> np.ndarray:
        """Probability of the most probable class."""
        return np.max(self.probabilities, -1)

    @property
    def entropy(self) -> np.ndarray:
        """Uncertainty about the class, in nats: ``expected_entropy + information``."""
        return _entropy(self.probabilities)

    @property
    def information(self) -> np.ndarray:
        """Mutual information of y and f: how much the samples disagree, in nats. More data reduce it."""
        return np.maximum(self.entropy - self.expected_entropy, 0.0)

    def log_prob(self, y: Any) -> np.ndarray:
        """log P(y) of each row; a label that the fit did not see has probability zero."""
        codes = self.codes(y)
        chosen = np.take_along_axis(self.probabilities, np.maximum(codes, 0)[:, None], -1)[:, 0]
        with np.errstate(divide="ignore"):
            return np.where(codes >= 0, np.log(chosen), -np.inf)

    def codes(self, y: Any) -> np.ndarray:
        """The position of each label in ``classes``, -1 for a label that the fit did not see."""
        labels = np.asarray(y)
        if labels.shape != (len(self),):
            raise InputError(f"y has shape {labels.shape}, but predictions are for {len(self)} rows")
        known = {label: code for code, label in enumerate(self.classes.tolist())}
        return np.asarray([known.get(label, -1) for label in labels.tolist()])

    def is_right(self, y: Any) -> np.ndarray:
        """Whether the most probable class is the true one."""
        return np.argmax(self.probabilities, -1) == self.codes(y)

    def brier(self, y: Any) -> float:
        """Mean over rows of sum_c (P(c) - 1{y = c})^2, between 0 and 2 (Brier 1950)."""
        truth = np.arange(len(self.classes)) == self.codes(y)[:, None]
        return float(np.mean(np.sum((self.probabilities - truth) ** 2, -1)))

    def scores(self, y: Any) -> dict[str, float]:
        """Mean log probability, accuracy, Brier score, expected calibration error in 15 bins."""
        return {
            "test_log_likelihood": float(np.mean(self.log_prob(y))),
            "accuracy": float(np.mean(self.is_right(y))),
            "brier": self.brier(y),
            "calibration_error": reliability(self.confidence, self.is_right(y), SCORE_BINS).error,
        }

    def calibration(self, y: Any) -> Reliability:
        """See ``Reliability``."""
        return reliability(self.confidence, self.is_right(y))

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows."""
        ends = np.cumsum(self.probabilities, -1)[:, :-1]
        draws = np.random.default_rng(seed).random((n, len(self), 1))
        return self.classes[np.sum(draws > ends, -1)]


def mean_and_entropy(log_probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean probabilities and mean entropy of samples (samples, rows, classes)."""
    per_sample = np.exp(log_probabilities.astype(np.float64))
    per_sample /= np.sum(per_sample, -1, keepdims=True)
    return np.mean(per_sample, 0), np.mean(_entropy(per_sample), 0)


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    return -np.sum(xlogy(probabilities, probabilities), -1)
