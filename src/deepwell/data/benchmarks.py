"""Benchmark sets by name: from the folder ``DEEPWELL_DATA``, else from OpenML, else a word on what to do."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwell.data.idx_files import read_idx
from deepwell.data.molecules import fingerprints
from deepwell.data.tables import column, read_table
from deepwell.errors import InputError

FOLDER_VARIABLE = "DEEPWELL_DATA"
UCI = (
    "boston", "concrete", "energy", "energy_cooling", "flights", "kin8nm", "naval", "power", "protein",
    "wine_red", "yacht",
)  # fmt: skip


class Dataset(NamedTuple):
    """A table split into inputs (DataFrame) and target (Series).

    ``num_train``: the first so many rows are the usual training rows, if there is such a usage; ``is_class``: whether
    the target is a class.
    """

    name: str
    X: Any
    y: Any
    num_train: int | None = None
    is_class: bool = False


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
    """Load a benchmark set; the last column of a local file ``uci/NAME.csv.gz`` is the target.

    ``digits`` ships with scikit-learn; ``mnist`` are the four idx files, ``cep`` molecules with 512 fingerprint bits.
    """
    folder = _folder()
    if name in OTHERS:
        return OTHERS[name](folder)
    if name not in UCI and name not in OPENML:
        raise InputError(f"unknown data set {name!r}: choose from {', '.join((*UCI, *OTHERS))}")
    if folder:
        path = folder / "uci" / f"{name}.csv.gz"
        if path.is_file():
            table = read_table(path)
            return Dataset(name, table.iloc[:, :-1], table.iloc[:, -1])
    if name in OPENML:
        return _fetch(name, OPENML[name])
    raise InputError(f"{name} is not on OpenML: set {FOLDER_VARIABLE} to a folder that holds uci/{name}.csv.gz")


def _folder() -> Path | None:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else None


def _digits(folder: Path | None) -> Dataset:
    """1,797 pictures of 8 x 8 pixels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError("digits ships with scikit-learn, which is not installed") from error
    found = load_digits(as_frame=True)
    return Dataset("digits", found.data, found.target, is_class=True)


def _mnist(folder: Path | None) -> Dataset:
    """70,000 pictures of 28 x 28 pixels; the first 60,000 train."""
    import pandas as pd

    if folder is None or not (folder / "mnist").is_dir():
        raise InputError(f"mnist needs its four idx files: set {FOLDER_VARIABLE} to a folder that holds them in mnist/")
    parts = [
        (
            read_idx(folder / "mnist" / f"{part}-images-idx3-ubyte.gz"),
            read_idx(folder / "mnist" / f"{part}-labels-idx1-ubyte.gz"),
        )
        for part in ("train", "t10k")
    ]
    for pictures, labels in parts:
        if pictures.ndim != 3 or labels.shape != pictures.shape[:1]:
            raise InputError(f"mnist has {len(pictures)} pictures, but {len(labels)} labels")
    pixels = np.concatenate([pictures.reshape(len(pictures), -1) for pictures, _ in parts])
    X = pd.DataFrame(pixels, columns=[f"pixel{i}" for i in range(pixels.shape[1])])
    y = pd.Series(np.concatenate([labels for _, labels in parts]), name="digit")
    return Dataset("mnist", X, y, num_train=len(parts[0][0]), is_class=True)


def _cep(folder: Path | None) -> Dataset:
    """29,978 molecules of the Harvard Clean Energy Project: fingerprint bits, and the power conversion efficiency."""
    import pandas as pd

    if folder is None or not (folder / "cep.csv.gz").is_file():
        raise InputError(f"cep needs its file: set {FOLDER_VARIABLE} to a folder that holds cep.csv.gz")
    table = read_table(folder / "cep.csv.gz")
    smiles, efficiency = (table.iloc[:, column(table, name)] for name in ("smiles", "pce"))
    if smiles.isna().any():
        raise InputError(f"cep.csv.gz lacks a molecule in row {int(np.argmax(smiles.isna()))}")
    bits = fingerprints(smiles.tolist(), folder)
    X = pd.DataFrame(bits, columns=[f"bit{i}" for i in range(bits.shape[1])])
    return Dataset("cep", X, efficiency)


OTHERS: dict[str, Callable[[Path | None], Dataset]] = {"digits": _digits, "mnist": _mnist, "cep": _cep}


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
