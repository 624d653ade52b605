"""Tables in, float64 matrices out: every refusal names the column, row or value that caused it."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def column(table: Any, name: str) -> int:
    """Position of a named column."""
    names = [str(c) for c in table.columns]
    if name not in names:
        raise InputError(f"no column {name!r}: the table has {', '.join(names)}")
    return names.index(name)


def split_target(table: Any, targets: Sequence[str]) -> tuple[Any, Any]:
    """(inputs, targets) of a DataFrame."""
    if len(set(targets)) < len(targets):
        raise InputError(f"a target is named more than once: {', '.join(targets)}")
    positions = [column(table, target) for target in targets]
    rest = [i for i in range(table.shape[1]) if i not in positions]
    if not rest:
        raise InputError("the table has no input column besides the target")
    return table.iloc[:, rest], table.iloc[:, positions]


def is_frame(values: Any) -> bool:
    """Whether this is a table with named columns, like a pandas DataFrame."""
    return hasattr(values, "columns") and hasattr(values, "iloc")


def require_same_rows(inputs: np.ndarray, targets: np.ndarray) -> None:
    """As many rows of one as of the other."""
    if len(inputs) != len(targets):
        raise InputError(f"X has {len(inputs)} rows, but y has {len(targets)}")


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """These rows, by number or by truth values, of an array, a list, a Series or a DataFrame."""
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


def column_types(values: Any) -> tuple[str, ...]:
    """What each column held before it became float64, in pandas' or numpy's words."""
    if is_frame(values):
        return tuple(str(kind) for kind in values.dtypes)
    array = np.asarray(values)
    return (str(array.dtype),) * (array.shape[1] if array.ndim == 2 else 1)


def default_names(count: int, what: str) -> list[str]:
    """x0, x1, ... for the columns of an array without names; y alone is y."""
    return ["y"] if what == "y" and count == 1 else [f"{what.lower()}{i}" for i in range(count)]


def to_matrix(values: Any, what: str) -> tuple[np.ndarray, list[str]]:
    """A finite float64 matrix and its column names; ``what`` is "X" or "y", and y may be one column alone."""
    if is_frame(values):
        names = [str(c) for c in values.columns]
        columns = [values.iloc[:, i].to_numpy() for i in range(len(names))]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InputError(f"{what} has more than one column named {repeated[0]!r}")
    else:
        array = to_array(values, what)
        if array.ndim == 1 and what == "y":
            array = array[:, None]
        if array.ndim != 2:
            raise InputError(f"{what} must have two dimensions (rows, columns), but it has {array.ndim}")
        names = default_names(array.shape[1], what)
        if what == "y" and getattr(values, "name", None) is not None:  # a named Series
            names = [str(values.name)]
        columns = list(array.T)
    if not columns:
        raise InputError(f"{what} has no columns")
    if len(columns[0]) == 0:
        raise InputError(f"{what} has no rows")
    matrix = np.stack([_numbers(column, name, what) for column, name in zip(columns, names, strict=True)], axis=1)
    _require_finite(matrix, names, what)
    return matrix, names


def to_array(values: Any, what: str) -> np.ndarray:
    """An array of whatever was given, if it is one."""
    if hasattr(values, "toarray"):
        raise InputError(f"{what} is a sparse matrix: pass {what}.toarray()")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} is a masked array with masked values: fill or drop them first")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} is not a table: its rows differ in length") from error


def _numbers(values: np.ndarray, name: str, what: str) -> np.ndarray:
    if values.dtype.kind == "c":
        raise InputError(f"column {name!r} of {what} holds complex numbers")
    if values.dtype.kind in "mM":
        raise InputError(f"column {name!r} of {what} holds dates or durations: turn them into numbers first")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        row, culprit = next((i, v) for i, v in enumerate(values) if not _is_number(v))
        if type(culprit).__name__ in ("NAType", "NoneType", "NaTType"):
            raise InputError(f"column {name!r} of {what} has a missing value (NaN) in row {row}") from None
        raise InputError(
            f"column {name!r} of {what} holds {culprit!r}, which is not a number: encode it first"
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _require_finite(matrix: np.ndarray, names: list[str], what: str) -> None:
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, place = bad[0]
        value = "a missing value (NaN)" if np.isnan(matrix[row, place]) else "an infinite value"
        more = f" ({len(bad)} such values in all)" if len(bad) > 1 else ""
        raise InputError(f"column {names[place]!r} of {what} has {value} in row {row}{more}")


def check_columns(expected: Sequence[str], num_columns: int) -> None:
    """Refuse a table whose number of columns differs from that of the training inputs."""
    if num_columns != len(expected):
        raise InputError(
            f"X has {num_columns} columns, but the model was fitted on {len(expected)}: {', '.join(expected)}"
        )


def align_columns(table: Any, expected: Sequence[str]) -> Any:
    """The expected columns of a DataFrame in the order of the fit; others are ignored."""
    return table.iloc[:, [column(table, name) for name in expected]]


def check_writable_kind(path: Path) -> None:
    """Refuse a file ending that ``write_table`` does not know."""
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
