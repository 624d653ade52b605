"""A predictive distribution over classes: the probabilities of each posterior sample, averaged."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepwell.errors import InputError


class ClassProbabilities:
    """P(y = c | x) = 1/S sum_s p_s(c | x), for each row x.

    probabilities: (rows, classes), summing to one; expected_entropy: the mean over samples of each row's entropy.
    """

    def __init__(self, probabilities: np.ndarray, expected_entropy: np.ndarray, classes: Sequence[Any]) -> None:
        self.probabilities = probabilities
        self.expected_entropy = expected_entropy
        self.classes = np.asarray(classes)

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
        """What the model does not know: how much the samples disagree, in nats (mutual information of y and f)."""
        return np.maximum(self.entropy - self.expected_entropy, 0.0)

    def log_prob(self, y: Any) -> np.ndarray:
        """log P(y) of each row; a label the model never saw has probability zero."""
        codes = self.codes(y)
        chosen = np.take_along_axis(self.probabilities, np.maximum(codes, 0)[:, None], -1)[:, 0]
        with np.errstate(divide="ignore"):
            return np.where(codes >= 0, np.log(chosen), -np.inf)

    def codes(self, y: Any) -> np.ndarray:
        """The number of each label's class, -1 for a label the model never saw."""
        labels = np.asarray(y)
        if labels.shape != (len(self),):
            raise InputError(f"y has shape {labels.shape}, but predictions are for {len(self)} rows")
        numbers = {label: code for code, label in enumerate(self.classes.tolist())}
        return np.asarray([numbers.get(label, -1) for label in labels.tolist()])

    def is_right(self, y: Any) -> np.ndarray:
        """Whether the most probable class is the true one."""
        return np.argmax(self.probabilities, -1) == self.codes(y)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows."""
        ends = np.cumsum(self.probabilities, -1)[:, :-1]
        draws = np.random.default_rng(seed).random((n, len(self), 1))
        return self.classes[np.sum(draws > ends, -1)]


def average(log_probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean probabilities, and the mean entropy, of samples (samples, rows, classes)."""
    per_sample = np.exp(log_probabilities.astype(np.float64))
    per_sample /= np.sum(per_sample, -1, keepdims=True)
    return np.mean(per_sample, 0), np.mean(_entropy(per_sample), 0)


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    from scipy.special import xlogy

    return -np.sum(xlogy(probabilities, probabilities), -1)
