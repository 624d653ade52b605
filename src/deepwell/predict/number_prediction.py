"""What predictive distributions of numbers and of counts share: mixtures whose components are asked block by block."""

import abc
from collections.abc import Callable, Iterator

import numpy as np

from deepwell.errors import InputError


class NumberPrediction(abc.ABC):
    """A mixture for each row and target; answers are shaped like y."""

    single_target: bool

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
        """The y with P(Y <= y) = q, per target; of counts the least with P(Y <= y) >= q."""
        if not 0.0 < q < 1.0:
            raise InputError(f"a quantile must lie strictly between 0 and 1, not at {q}")
        return self._shaped(self._quantile(q))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval with this probability; of counts, with at least this one."""
        if not 0.0 < level < 1.0:
            raise InputError(f"an interval's level must lie strictly between 0 and 1, not at {level}")
        return self.quantile(0.5 - level / 2.0), self.quantile(0.5 + level / 2.0)

    def _as_columns(self, y: np.ndarray) -> np.ndarray:
        """y in float64, (rows, targets)."""
        values = np.asarray(y, np.float64)
        if values.ndim == 1 and self.single_target:
            values = values[:, None]
        if values.shape != self._shape:
            raise InputError(f"y has shape {np.shape(y)}, but predictions are for {self._shape}")
        return values

    def _over_rows(self, function: Callable[..., np.ndarray], y: np.ndarray | None = None) -> np.ndarray:
        parts = [
            function(*mixture) if y is None else function(*mixture, y[rows, :, None])
            for rows, *mixture in self._blocks()
        ]
        return np.concatenate(parts)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.single_target else values
