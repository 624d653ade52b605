"""Tables in, float64 matrices out. Every error names the column, row or value that caused it."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwell.errors import InputError, require

CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")


def read_table(path: str | Path) -> Any:
    """A pandas DataFrame from CSV, gzipped CSV or Parquet, by the file's ending."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    name = path.name.lower()
    try:
        if name.endswith(PARQUET):
            return _read_parquet(path)
        if name.endswith(CSV):
            return pd.read_csv(path)
    except (
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
        UnicodeDecodeError,
        OSError,
        EOFError,
        zlib.error,
    ) as error:
        raise InputError(f"{path} cannot be read as a table: {error}") from error
    raise InputError(f"{path} is not a table deepwell reads: use .csv, .csv.gz or .parquet")


def _read_parquet(path: Path) -> Any:
    import pandas as pd

    require("pyarrow", f"reading {path}")
    try:
        return pd.read_parquet(path)
    except ValueError as error:  # pyarrow's errors are ValueErrors
        raise InputError(f"{path} cannot be read as a table: {error}") from error


def position(table: Any, name: str) -> int:
    """The position of a named column."""
    names = [str(c) for c in table.columns]
    if name not in names:
        raise InputError(f"no column {name!r}: the table has {', '.join(names)}")
    return names.index(name)


def split_target(table: Any, targets: Sequence[str]) -> tuple[Any, Any]:
    """(inputs, targets) of a DataFrame."""
    if len(set(targets)) < len(targets):
        raise InputError(f"a target is named more than once: {', '.join(targets)}")
    positions = [position(table, target) for target in targets]
    rest = [i for i in range(table.shape[1]) if i not in positions]
    if not rest:
        raise InputError("the table has no input column besides the target")
    return table.iloc[:, rest], table.iloc[:, positions]


def is_frame(values: Any) -> bool:
    """Whether this is a table with named columns, like a pandas DataFrame."""
    return hasattr(values, "columns") and hasattr(values, "iloc")


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a list, a Series or a DataFrame, by position or by a mask."""
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


def require_same_rows(X: np.ndarray, y: np.ndarray) -> None:
    """Raise an error unless X and y have equally many rows."""
    if len(X) != len(y):
        raise InputError(f"X has {len(X)} rows, but y has {len(y)}")


class Column(NamedTuple):
    """A column of a table, X or y, as it was given."""

    table: str
    name: str
    type: str
    """As pandas or numpy writes it."""
    values: np.ndarray

    def __str__(self) -> str:
        return f"column {self.name!r} of {self.table}"

    def numbers(self) -> np.ndarray:
        """Finite float64."""
        if self.values.dtype.kind == "c":
            raise InputError(f"{self} holds complex numbers")
        if self.values.dtype.kind in "mM":
            raise InputError(f"{self} holds dates or durations: turn them into numbers first")
        try:
            numbers = self.values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            row, culprit = next((i, v) for i, v in enumerate(self.values) if not _is_number(v))
            if type(culprit).__name__ in ("NAType", "NoneType", "NaTType"):
                raise InputError(f"{self} has a missing value (NaN) in row {row}") from None
            raise InputError(f"{self} holds {culprit!r}, which is not a number: encode it first") from None
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            value = "a missing value (NaN)" if np.isnan(numbers[bad[0]]) else "an infinite value"
            more = f" ({len(bad)} such values in the column)" if len(bad) > 1 else ""
            raise InputError(f"{self} has {value} in row {bad[0]}{more}")
        return numbers


class Matrix(NamedTuple):
    """A finite float64 matrix, and the names and original types of its columns."""

    values: np.ndarray
    names: tuple[str, ...]
    types: tuple[str, ...]
    named: bool
    """Whether the table named its columns, as a DataFrame does."""


def to_matrix(values: Any, what: str, by_name: Sequence[str] | None = None) -> Matrix:
    """A table as a matrix; see ``read_columns``."""
    columns = read_columns(values, what, by_name)
    matrix = np.stack([column.numbers() for column in columns], axis=1)
    names, types = (tuple(getattr(column, part) for column in columns) for part in ("name", "type"))
    return Matrix(matrix, names, types, is_frame(values))


def read_columns(values: Any, what: str, by_name: Sequence[str] | None = None) -> list[Column]:
    """The columns of a DataFrame, an array or nested lists. ``what`` is "X" or "y"; y may be a single column.

    Without names they are x0, x1, ..., and y if it is the only one. ``by_name`` selects columns of a DataFrame.
    """
    columns = _of_frame(values, what, by_name) if is_frame(values) else _of_array(values, what)
    if not columns:
        raise InputError(f"{what} has no columns")
    if len(columns[0].values) == 0:
        raise InputError(f"{what} has no rows")
    return columns


def _of_frame(frame: Any, what: str, by_name: Sequence[str] | None) -> list[Column]:
    if by_name is not None:
        frame = frame.iloc[:, [position(frame, name) for name in by_name]]
    names = [str(name) for name in frame.columns]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{what} has more than one column named {repeated[0]!r}")
    series = (frame.iloc[:, i] for i in range(len(names)))
    return [Column(what, name, str(one.dtype), one.to_numpy()) for name, one in zip(names, series, strict=True)]


def _of_array(values: Any, what: str) -> list[Column]:
    if hasattr(values, "toarray"):
        raise InputError(f"{what} is a sparse matrix: pass {what}.toarray()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} is a masked array with masked values: fill or drop them first")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} is not a table: its rows differ in length") from error
    if array.ndim == 1 and what == "y":
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{what} must have two dimensions (rows, columns), but it has {array.ndim}")
    names = [f"{what.lower()}{i}" for i in range(array.shape[1])]
    if what == "y" and len(names) == 1:
        names = ["y" if getattr(values, "name", None) is None else str(values.name)]  # a Series may have a name
    return [Column(what, name, str(array.dtype), one) for name, one in zip(names, array.T, strict=True)]


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def check_writable_kind(path: Path) -> None:
    """Raise an error for a file ending that ``write_table`` does not know."""
    if not path.name.lower().endswith((*CSV, *PARQUET)):
        raise InputError(f"{path} is not a kind of table deepwell writes: use .csv, .csv.gz or .parquet")


def write_table(table: Any, path: str | Path) -> None:
    """Write a DataFrame as CSV, gzipped CSV or Parquet, by the file's ending, without its index."""
    path = Path(path)
    check_writable_kind(path)
    try:
        if path.name.lower().endswith(PARQUET):
            require("pyarrow", f"writing {path}")
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
