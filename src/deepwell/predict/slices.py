"""Predictions along one input, the others fixed."""

from typing import NamedTuple

import numpy as np

from deepwell.predict.prediction import Prediction

PLACES = 100
TAIL_SHARE = 0.01
"""Share of the rows left out at either end, so that one outlying row does not stretch the range."""


class InputSlice(NamedTuple):
    """p(y | x_j = x, the other inputs at their medians), at many values x of input j."""

    x: np.ndarray
    prediction: Prediction
    name: str
    """Of the input."""
    target_names: tuple[str, ...]


def rows_along(X: np.ndarray, column: int, places: int = PLACES) -> np.ndarray:
    """Rows at the medians of the columns of X but for one column, which runs from its 1 % to its 99 % quantile."""
    rows = np.tile(np.median(X, axis=0), (places, 1))
    first, last = np.quantile(X[:, column], [TAIL_SHARE, 1.0 - TAIL_SHARE])
    rows[:, column] = np.linspace(first, last, places)
    return rows
