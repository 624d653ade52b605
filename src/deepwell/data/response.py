"""The response y: numbers, counts or classes. Everything that follows from which of them it is."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from deepwell.data.scaling import Scaling, fit_scaling, no_scaling
from deepwell.data.tables import Column, read_columns
from deepwell.errors import InputError

Kind = Literal["numbers", "counts", "classes"]

MAX_CLASSES, FEW = 1_000, 20
LARGEST_COUNT = 2**24
"""Counts up to here are exact in float32."""


class Response(NamedTuple):
    """y as float64, (rows, targets); a class is its position in ``classes``."""

    kind: Kind
    values: np.ndarray
    names: tuple[str, ...]
    classes: tuple[Any, ...] | None = None

    def scaling(self) -> Scaling:
        """Numbers are standardised; counts and classes are not."""
        return fit_scaling(self.values) if self.kind == "numbers" else no_scaling(len(self.names))

    @property
    def original(self) -> np.ndarray:
        """y in the user's terms: labels, or numbers; (rows,) if it is one column."""
        y = self.values[:, 0] if len(self.names) == 1 else self.values
        return y if self.classes is None else np.asarray(self.classes)[y.astype(int)]


def read_response(y: Any, kind: Kind | None = None, classes: Any = None) -> Response:
    """y as this kind of response. Without a kind, text, truth values and a y with ``classes`` are classes, and the rest
    are numbers. ``classes`` lists the labels in order; by default they are those of y, sorted."""
    columns = read_columns(y, "y")
    if kind is None:
        kind = "classes" if classes is not None or _are_labels(columns) else "numbers"
    if kind == "classes":
        return _as_classes(columns, classes)
    if classes is not None:
        raise InputError(f"classes={classes!r} needs a classification target, but the likelihood is for {kind}")
    values = np.stack([column.numbers() for column in columns], axis=1)
    if kind == "counts":
        _require_counts(columns, values)
    return Response(kind, values, tuple(column.name for column in columns))


def shared_classes(ys: Sequence[Any], kind: Kind | None = None) -> tuple[Any, ...] | None:
    """All classes of several targets, sorted; None if they are not classes."""
    if kind is None and _are_labels(read_columns(ys[0], "y")):
        kind = "classes"
    if kind != "classes":
        return None
    return read_response(np.concatenate([np.ravel(np.asarray(y, object)) for y in ys]), kind).classes


def guess_kind(y: Any) -> Kind:
    """For a y whose kind is not stated: labels, and a column of two values, are classes."""
    columns = read_columns(y, "y")
    return "classes" if _are_labels(columns) or _take_two_values(columns) else "numbers"


def few_whole_numbers(y: Any) -> int:
    """How many distinct values a column of integers has, if at most 20; else 0."""
    column, *others = read_columns(y, "y")
    if others or column.values.dtype.kind not in "iu":
        return 0
    distinct = len(np.unique(column.values))
    return distinct if distinct <= FEW else 0


def _are_labels(columns: Sequence[Column]) -> bool:
    """Whether y can only be classes: text that is not all numbers, or truth values."""
    if len(columns) > 1 or columns[0].values.dtype.kind not in "bOUS":
        return False
    labels = [label for label in columns[0].values.tolist() if not _is_missing(label)]
    if all(isinstance(label, bool) for label in labels):
        return bool(labels)
    return all(isinstance(label, str) for label in labels) and not all(_is_number(label) for label in labels)


def _take_two_values(columns: Sequence[Column]) -> bool:
    """Whether a column of more than two numbers has exactly two distinct values."""
    values = columns[0].values
    if len(columns) > 1 or values.dtype.kind not in "iuf" or len(values) <= 2 or len(np.unique(values[:1_000])) > 2:
        return False
    return len(np.unique(values)) == 2


def _require_counts(columns: Sequence[Column], values: np.ndarray) -> None:
    for column, counts in zip(columns, values.T, strict=True):
        bad = np.flatnonzero((counts < 0) | (counts != np.floor(counts)))
        if len(bad):
            raise InputError(f"{column} holds {counts[bad[0]]:g} in row {bad[0]}, which is not a count")
        if np.max(counts) > LARGEST_COUNT:
            raise InputError(f"{column} holds counts above {LARGEST_COUNT}")


def _as_classes(columns: Sequence[Column], classes: Any) -> Response:
    column, *others = columns
    if others:
        raise InputError("a classification target must be one column")
    labels = column.values.tolist()
    _require_labels(labels, str(column))
    known = sorted(set(labels)) if classes is None else _checked_classes(classes)
    if len(known) < 2:
        raise InputError(f"{column} has only one class, {known[0]!r}; classification needs at least two")
    if len(known) > MAX_CLASSES:
        raise InputError(f"{column} has {len(known)} classes: is it a number rather than a class?")
    codes = {label: code for code, label in enumerate(known)}
    for row, label in enumerate(labels):
        if label not in codes:
            raise InputError(f"{column} holds {label!r} in row {row}, which is not one of the classes")
    values = np.asarray([codes[label] for label in labels], np.float64)[:, None]
    return Response("classes", values, (column.name,), tuple(known))


def _checked_classes(classes: Any) -> list[Any]:
    """The labels that the user listed."""
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise InputError(f"classes={classes!r} must be a list of labels")
    labels = [label.item() if hasattr(label, "item") else label for label in classes]
    _require_labels(labels, "classes")
    if len(set(labels)) < len(labels):
        raise InputError("classes lists a label twice")
    return labels


def _require_labels(labels: list[Any], what: str) -> None:
    if not labels:
        raise InputError(f"{what} is empty")
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise InputError(f"{what} has a missing value (NaN) in row {row}")
        if not isinstance(label, str | bool | int | float):
            raise InputError(f"{what} holds {label!r} in row {row}: labels must be text or numbers")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError(f"{what} mixes text and numbers: make all labels text or all numbers")


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
