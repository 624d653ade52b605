"""What the benchmarks on UCI sets share: the data of a split, and rows that are measured once."""

from collections.abc import Callable, Iterable

import numpy as np

from deepwell.data import load, split_rows
from deepwell.studies.row_store import Row, RowStore


def split_of(dataset: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training inputs and targets, test inputs and targets."""
    data = load(dataset)
    X, y = data.X.to_numpy(float), data.y.to_numpy(float)
    train, test = split_rows(len(X), split)
    return X[train], y[train], X[test], y[test]


def measure_missing(store: RowStore, wanted: Iterable[Row], measure: Callable[[Row], Row]) -> None:
    """Append ``member | measure(member)`` for each member that has no row yet."""
    for member in wanted:
        if store.key(member) not in store.finished():
            store.append(member | measure(member))
