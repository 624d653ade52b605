"""Benchmark sets by name: from the folder ``DEEPWELL_DATA``, else from OpenML, else a word on what to do."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.data.errors import InputError
from deepwell.data.tables import read_table

FOLDER_VARIABLE = "DEEPWELL_DATA"
UCI = (
    "boston", "concrete", "energy", "energy_cooling", "flights", "kin8nm", "naval", "power", "protein",
    "wine_red", "yacht",
)  # fmt: skip


class Dataset(NamedTuple):
    """A table split into inputs (DataFrame) and target (Series)."""

    name: str
    X: Any
    y: Any


class OnlineSource(NamedTuple):
    """Where OpenML keeps a set, which column is the target, and the shape it must have."""

    data_id: int
    target: str
    rows: int
    features: int
    leave_out: tuple[str, ...] = ()


OPENML = {
    "boston": OnlineSource(531, "MEDV", 506, 13),
    "concrete": OnlineSource(44959, "strength", 1030, 8),
    "energy": OnlineSource(44960, "heating_load", 768, 8, ("cooling_load",)),
    "kin8nm": OnlineSource(189, "y", 8192, 8),
    "protein": OnlineSource(44963, "RMSD", 45730, 9),
    "wine_red": OnlineSource(40691, "class", 1599, 11),
}


def load(name: str) -> Dataset:
    """Load a benchmark set; the last column of a local file ``uci/NAME.csv.gz`` is the target."""
    if name not in UCI and name not in OPENML:
        raise InputError(f"unknown data set {name!r}: choose from {', '.join(UCI)}")
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        path = Path(folder) / "uci" / f"{name}.csv.gz"
        if path.is_file():
            table = read_table(path)
            return Dataset(name, table.iloc[:, :-1], table.iloc[:, -1])
    if name in OPENML:
        return _fetch(name, OPENML[name])
    raise InputError(f"{name} is not on OpenML: set {FOLDER_VARIABLE} to a folder that holds uci/{name}.csv.gz")


def _fetch(name: str, source: OnlineSource) -> Dataset:
    """Fetch from OpenML through scikit-learn, which keeps a copy in its data folder."""
    way_out = f"set {FOLDER_VARIABLE} to a folder that holds uci/{name}.csv.gz"
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise InputError(f"fetching {name} needs scikit-learn; without it, {way_out}") from error
    try:
        table = fetch_openml(data_id=source.data_id, as_frame=True, parser="liac-arff", target_column=None).data
        X = table.drop(columns=source.target).drop(columns=list(source.leave_out), errors="ignore").astype(float)
        y = table[source.target].astype(float)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{name} could not be fetched from OpenML ({error}); {way_out}") from error
    if X.shape != (source.rows, source.features):
        raise InputError(
            f"OpenML's {name} is {X.shape[0]} x {X.shape[1]}, not {source.rows} x {source.features}; {way_out}"
        )
    return Dataset(name, X, y)
