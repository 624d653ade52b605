"""The benchmark sets of the studies, a line a set, and their splits."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from deepwell.data.benchmarks import Dataset, load
from deepwell.data.splits import split_by_group, split_rows
from deepwell.fits.fitted import FittedModel
from deepwell.studies.provenance import data_hash
from deepwell.studies.row_store import Row
from deepwell.studies.synthetic import synthetic_table


def _day(X: Any) -> np.ndarray:
    return 100 * X["month"].to_numpy() + X["day"].to_numpy()


class UciSet(NamedTuple):
    """Number of training rows; ``group`` names the rows that must stay together in a split."""

    training_rows: int
    group: Callable[[Any], np.ndarray] | None = None


UCI_SETS = {
    "boston": UciSet(404),
    "energy": UciSet(614),
    "concrete": UciSet(824),
    "wine_red": UciSet(1279),
    "kin8nm": UciSet(6553),
    "power": UciSet(7654),
    "naval": UciSet(9547),
    "protein": UciSet(36584),
    "flights": UciSet(260_000, group=_day),
}
"""Smallest first."""


def relative_cost(dataset: str) -> float:
    """Of an iteration on this set, whose minibatch has at most 10,000 rows; only for the time left."""
    return min(UCI_SETS[dataset].training_rows, 10_000) ** 0.75


class SplitData(NamedTuple):
    """All rows of a set, and which of them train and test."""

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    hash: str
    is_class: bool

    @property
    def training(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of the training rows."""
        return self.X[self.train], self.y[self.train]

    def test_scores(self, model: FittedModel) -> dict[str, float]:
        """Scores of the model's predictions of the test rows."""
        return model.predict_dist(self.X[self.test]).scores(self.y[self.test])

    def results(self, model: FittedModel, **more: Any) -> Row:
        """The rest of a row: scores, seconds of the fit and of scoring, number of training rows, data hash."""
        started = time.perf_counter()
        test_scores = self.test_scores(model)
        seconds = round(model.seconds + time.perf_counter() - started, 2)
        return {**test_scores, "seconds": seconds, "rows": len(self.train), **more, "data": self.hash}


def load_split(dataset: str, split: int, seed: int, smoke: bool) -> SplitData:
    """One split of a benchmark set, or in a smoke run of its synthetic stand-in.

    The set's usual training rows if it has such; one split by group, whatever ``split``, if it has groups (flights by
    day, as the paper's year by artist); else a random split.
    """
    data, X, y, digest = _arrays(dataset, smoke)
    group = UCI_SETS[dataset].group if dataset in UCI_SETS else None
    if data.num_train is not None:
        train, test = np.split(np.arange(len(X)), [data.num_train])
    elif group is not None:
        train, test = split_by_group(group(data.X))
    else:
        train, test = split_rows(len(X), split, seed)
    return SplitData(X, y, train, test, digest, data.is_class)


@lru_cache(1)
def _arrays(dataset: str, smoke: bool) -> tuple[Dataset, np.ndarray, np.ndarray, str]:
    data = synthetic_table(dataset) if smoke else load(dataset)
    X, y = data.X.to_numpy(float), data.y.to_numpy()
    return data, X, y, data_hash(X, y)
