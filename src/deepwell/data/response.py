"""What the target is: numbers, counts or classes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deepwell.data.tables import is_frame, to_array, to_matrix
from deepwell.errors import InputError

MOST_CLASSES, FEW = 1_000, 20
LARGEST_COUNT = 2**24
"""Counts up to here are whole numbers in float32."""


class Targets(NamedTuple):
    """Numbers, counts, or the numbers of classes, (rows, targets); the names of the columns; the classes, if any."""

    values: np.ndarray
    names: list[str]
    classes: tuple[Any, ...] | None


def are_labels(y: Any) -> bool:
    """Whether y can only be classes: text that is no number, or truth values."""
    column = _one_column(y)
    if column is None or column.dtype.kind not in "bOUS":
        return False
    labels = [label for label in column.tolist() if not _is_missing(label)]
    if all(isinstance(label, bool) for label in labels):
        return bool(labels)
    return all(isinstance(label, str) for label in labels) and not all(_is_number(label) for label in labels)


def takes_two_values(y: Any) -> bool:
    """Whether a column of more than two numbers takes exactly two values."""
    column = _one_column(y)
    if column is None or column.dtype.kind not in "iuf" or len(column) <= 2 or len(np.unique(column[:1_000])) > 2:
        return False
    return len(np.unique(column)) == 2


def few_whole_numbers(y: Any) -> int:
    """How many different values a column of whole numbers takes, if at most 20; else 0."""
    column = _one_column(y)
    if column is None or column.dtype.kind not in "iu":
        return 0
    different = len(np.unique(column))
    return different if different <= FEW else 0


def as_numbers(y: Any) -> Targets:
    """Finite numbers."""
    return Targets(*to_matrix(y, "y"), None)


def as_counts(y: Any) -> Targets:
    """Whole numbers from 0 on."""
    values, names = to_matrix(y, "y")
    for place, name in enumerate(names):
        bad = np.flatnonzero((values[:, place] < 0) | (values[:, place] != np.floor(values[:, place])))
        if len(bad):
            raise InputError(f"column {name!r} of y holds {values[bad[0], place]:g} in row {bad[0]}: no count")
        if np.max(values[:, place]) > LARGEST_COUNT:
            raise InputError(f"column {name!r} of y holds counts beyond {LARGEST_COUNT}")
    return Targets(values, names, None)


def as_classes(y: Any, classes: Sequence[Any] | None = None) -> Targets:
    """The number of each row's class; classes are the sorted labels, unless they are given."""
    column = _one_column(y)
    if column is None:
        raise InputError("classes must be one column")
    labels = column.tolist()
    name = _name(y)
    _require_labels(labels, f"column {name!r} of y")
    known = sorted(set(labels)) if classes is None else _given(classes)
    if len(known) < 2:
        raise InputError(f"column {name!r} of y has one class only, {known[0]!r}: there is nothing to tell apart")
    if len(known) > MOST_CLASSES:
        raise InputError(f"column {name!r} of y has {len(known)} classes: is it a number rather than a class?")
    numbers = {label: number for number, label in enumerate(known)}
    for row, label in enumerate(labels):
        if label not in numbers:
            raise InputError(f"column {name!r} of y holds {label!r} in row {row}, which is not among the classes")
    return Targets(np.asarray([numbers[label] for label in labels], np.float64)[:, None], [name], tuple(known))


def _given(classes: Any) -> list[Any]:
    """Classes as the user gave them."""
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise InputError(f"classes={classes!r} must be a list of labels")
    known = [_plain(label) for label in classes]
    _require_labels(known, "classes")
    if len(set(known)) < len(known):
        raise InputError("classes names a class twice")
    return known


def _require_labels(labels: list[Any], what: str) -> None:
    if not labels:
        raise InputError(f"{what} has no rows")
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise InputError(f"{what} has a missing value (NaN) in row {row}")
        if not isinstance(label, str | bool | int | float):
            raise InputError(f"{what} holds {label!r} in row {row}: classes are text or numbers")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError(f"{what} mixes text and numbers: make all labels one or the other")


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _name(y: Any) -> str:
    if is_frame(y):
        return str(y.columns[0])
    return "y" if getattr(y, "name", None) is None else str(y.name)


def _one_column(y: Any) -> np.ndarray | None:
    """The labels of y as an array, if y is one column."""
    if is_frame(y):
        return y.iloc[:, 0].to_numpy() if y.shape[1] == 1 else None
    column = to_array(y, "y")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    return column if column.ndim == 1 else None


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
