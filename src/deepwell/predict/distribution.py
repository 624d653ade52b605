"""What predictive distributions share: of any response, and of numbers and counts."""

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from deepwell.data.scaling import Scaling
from deepwell.errors import InputError
from deepwell.model.likelihoods import Marginal
from deepwell.predict.calibration import Calibration, Reliability, calibration


class PredictiveDistribution(abc.ABC):
    """p(y | x) for each of some rows x."""

    @classmethod
    @abc.abstractmethod
    def from_samples(
        cls, blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
    ) -> Self:
        """The average of p(y | x) over the samples, of the rows of all blocks. ``scaling`` is that of y."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """Rows."""

    @abc.abstractmethod
    def log_prob(self, y: Any) -> np.ndarray:
        """log p(y) of each row, joint over targets."""

    @abc.abstractmethod
    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows."""

    @abc.abstractmethod
    def scores(self, y: Any) -> dict[str, float]:
        """Scores against the y observed."""

    @abc.abstractmethod
    def calibration(self, y: Any) -> Calibration | Reliability:
        """Whether the stated uncertainty is that of the y observed."""


class NumberPrediction(PredictiveDistribution):
    """A mixture for each row and target; answers are shaped like y."""

    step: ClassVar[float]
    """From one value of y to the next: 0 for numbers, 1 for counts."""
    single_target: bool

    @property
    @abc.abstractmethod
    def mean(self) -> np.ndarray:
        """Mean of y."""

    @property
    @abc.abstractmethod
    def std(self) -> np.ndarray:
        """Standard deviation of y."""

    @abc.abstractmethod
    def cdf(self, y: ArrayLike) -> np.ndarray:
        """P(Y <= y), per target."""

    @abc.abstractmethod
    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2, per target."""

    @property
    @abc.abstractmethod
    def _shape(self) -> tuple[int, int]:
        """Rows and targets."""

    @abc.abstractmethod
    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Consecutive rows, two parameters of their components and the weights, components along the last axis."""

    @abc.abstractmethod
    def _quantile(self, q: float) -> np.ndarray:
        """(rows, targets)."""

    def __len__(self) -> int:
        return self._shape[0]

    def quantile(self, q: float) -> np.ndarray:
        """The y with P(Y <= y) = q, per target; for counts the least with P(Y <= y) >= q."""
        if not 0.0 < q < 1.0:
            raise InputError(f"a quantile must lie strictly between 0 and 1, not at {q}")
        return self._shaped(self._quantile(q))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval with this probability; for counts, with at least this one."""
        if not 0.0 < level < 1.0:
            raise InputError(f"an interval's level must lie strictly between 0 and 1, not at {level}")
        return self.quantile(0.5 - level / 2.0), self.quantile(0.5 + level / 2.0)

    def pit(self, y: ArrayLike) -> np.ndarray:
        """Probability integral transform (F(y) + F(y - step)) / 2: F(y) for numbers, the middle of the jump for
        counts."""
        if self.step == 0.0:
            return self.cdf(y)
        return 0.5 * (self.cdf(y) + self.cdf(np.asarray(y) - self.step))

    def scores(self, y: ArrayLike) -> dict[str, float]:
        """Mean log density, root mean squared error, mean CRPS, and the share of y in the 95 % interval."""
        lower, upper = self.interval(0.95)
        return {
            "test_log_likelihood": float(np.mean(self.log_prob(y))),
            "rmse": float(np.sqrt(np.mean((self.mean - y) ** 2))),
            "crps": float(np.mean(self.crps(y))),
            "coverage_95": float(np.mean((y >= lower) & (y <= upper))),
        }

    def calibration(self, y: ArrayLike) -> Calibration:
        """See ``Calibration``."""
        lower, upper = self.interval(0.9)
        return calibration(np.ravel(self.pit(y)), float(np.mean(upper - lower)))

    def _as_columns(self, y: ArrayLike) -> np.ndarray:
        """y in float64, (rows, targets)."""
        values = np.asarray(y, np.float64)
        if values.ndim == 1 and self.single_target:
            values = values[:, None]
        if values.shape != self._shape:
            raise InputError(f"y has shape {np.shape(y)}, but predictions have shape {self._shape}")
        return values

    def _by_blocks(self, function: Callable[..., np.ndarray], y: np.ndarray | None = None) -> np.ndarray:
        """A function of the mixtures, and of y if given, block of rows by block."""
        parts = [
            function(*mixture) if y is None else function(*mixture, y[rows, :, None])
            for rows, *mixture in self._blocks()
        ]
        return np.concatenate(parts)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.single_target else values


def join_blocks(blocks: Iterable[Marginal]) -> Marginal:
    """Blocks joined along the rows, axis 1. A parameter that all rows share has length 1 there, in every block."""
    parts = list(blocks)

    def join(same: Sequence[Any]) -> Any:
        return same[0] if len(same) > 1 and same[0].shape[1] == 1 else np.concatenate(same, axis=1)

    return type(parts[0])(*map(join, zip(*parts, strict=True)))


def normalised(log_weights: Any) -> np.ndarray:
    """Weights that sum to 1 along the last axis, in float64."""
    weights = np.exp(np.asarray(log_weights, np.float64))
    return weights / np.sum(weights, -1, keepdims=True)
