"""Tables in, float64 matrices out: every refusal names the column, row or value that caused it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.errors import InputError


def read_table(path: str | Path) -> Any:
    """A pandas DataFrame from CSV, gzipped CSV or Parquet, by the file's ending."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    name = path.name.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            return _read_parquet(path)
        if name.endswith((".csv", ".csv.gz")):
            return pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read as a table: {error}") from error
    raise InputError(f"{path} is not a table deepwell reads: use .csv, .csv.gz or .parquet")


def _read_parquet(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise InputError(f"reading {path} needs pyarrow: pip install 'deepwell[parquet]'") from error
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
    positions = [column(table, target) for target in targets]
    rest = [i for i in range(table.shape[1]) if i not in positions]
    if not rest:
        raise InputError("the table has no input column besides the target")
    return table.iloc[:, rest], table.iloc[:, positions]


def default_names(count: int, what: str) -> list[str]:
    """x0, x1, ... for the columns of an array without names; y alone is y."""
    return ["y"] if what == "y" and count == 1 else [f"{what.lower()}{i}" for i in range(count)]


def to_matrix(values: Any, what: str) -> tuple[np.ndarray, list[str]]:
    """A finite float64 matrix and its column names; ``what`` is "X" or "y", and y may be one column alone."""
    if hasattr(values, "columns"):  # a DataFrame
        names = [str(c) for c in values.columns]
        columns = [values.iloc[:, i].to_numpy() for i in range(len(names))]
    else:
        array = np.asarray(values)
        if array.ndim == 1 and what == "y":
            array = array[:, None]
        if array.ndim != 2:
            raise InputError(f"{what} must have two dimensions (rows, columns), but it has {array.ndim}")
        names = default_names(array.shape[1], what)
        if what == "y" and getattr(values, "name", None) is not None:  # a named Series
            names = [str(values.name)]
        columns = list(array.T)
    if len(values) == 0:
        raise InputError(f"{what} has no rows")
    if not columns:
        raise InputError(f"{what} has no columns")
    matrix = np.stack([_numbers(column, name, what) for column, name in zip(columns, names, strict=True)], axis=1)
    _require_finite(matrix, names, what)
    return matrix, names


def _numbers(values: np.ndarray, name: str, what: str) -> np.ndarray:
    if values.dtype.kind == "c":
        raise InputError(f"column {name!r} of {what} holds complex numbers")
    if values.dtype.kind in "mM":
        raise InputError(f"column {name!r} of {what} holds dates or durations: turn them into numbers first")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        culprit = next(v for v in values if not _is_number(v))
        raise InputError(
            f"column {name!r} of {what} holds {culprit!r}, which is not a number: encode it first"
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
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


def write_table(table: Any, path: str | Path) -> None:
    """Write a DataFrame as CSV, gzipped CSV or Parquet, by the file's ending, without its index."""
    path = Path(path)
    name = path.name.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            table.to_parquet(path, index=False)
        elif name.endswith((".csv", ".csv.gz")):
            table.to_csv(path, index=False)
        else:
            raise InputError(f"{path} is not a kind of table deepwell writes: use .csv, .csv.gz or .parquet")
    except ImportError as error:
        raise InputError(f"writing {path} needs pyarrow: pip install 'deepwell[parquet]'") from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
