"""Benchmark data sets by name, from the folder that ``DEEPWELL_DATA`` names or from OpenML."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwell.data.idx_files import read_idx
from deepwell.data.molecules import fingerprints
from deepwell.data.tables import position, read_table
from deepwell.errors import InputError, require

FOLDER_VARIABLE = "DEEPWELL_DATA"


class Dataset(NamedTuple):
    """A table split into inputs (DataFrame) and target (Series).

    ``num_train`` is the number of leading rows that usually train, if there is such a convention.
    """

    name: str
    X: Any
    y: Any
    num_train: int | None = None
    is_class: bool = False


Loader = Callable[[str, Path | None], Dataset]
"""From the name of a set and the data folder, if there is one, to the set."""


class OpenML(NamedTuple):
    """Where OpenML keeps a table, its target column, and the shape it must have."""

    data_id: int
    target: str
    rows: int
    features: int
    leave_out: tuple[str, ...] = ()


def regression(openml: OpenML | None = None) -> Loader:
    """A table whose file is ``uci/NAME.csv.gz``, its last column the target; without the file it comes from OpenML."""

    def loader(name: str, folder: Path | None) -> Dataset:
        path = None if folder is None else folder / "uci" / f"{name}.csv.gz"
        if path is not None and path.is_file():
            table = read_table(path)
            return Dataset(name, table.iloc[:, :-1], table.iloc[:, -1])
        remedy = f"set {FOLDER_VARIABLE} to a folder that holds uci/{name}.csv.gz"
        if openml is None:
            raise InputError(f"{name} is not on OpenML: {remedy}")
        return _fetch(name, openml, remedy)

    return loader


def _fetch(name: str, source: OpenML, remedy: str) -> Dataset:
    """Fetch from OpenML through scikit-learn, which keeps a copy in its data folder."""
    require("sklearn", f"fetching {name}", otherwise=remedy)
    from sklearn.datasets import fetch_openml

    try:
        table = fetch_openml(data_id=source.data_id, as_frame=True, parser="liac-arff", target_column=None).data
        X = table.drop(columns=source.target).drop(columns=list(source.leave_out), errors="ignore").astype(float)
        y = table[source.target].astype(float)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{name} could not be fetched from OpenML ({error}); {remedy}") from error
    if X.shape != (source.rows, source.features):
        raise InputError(
            f"OpenML's {name} is {X.shape[0]} x {X.shape[1]}, not {source.rows} x {source.features}; {remedy}"
        )
    return Dataset(name, X, y)


def digits(name: str, folder: Path | None) -> Dataset:
    """1,797 pictures of 8 x 8 pixels, which ship with scikit-learn."""
    require("sklearn", "the data set digits")
    from sklearn.datasets import load_digits

    table = load_digits(as_frame=True)
    return Dataset(name, table.data, table.target, is_class=True)


def mnist(name: str, folder: Path | None) -> Dataset:
    """70,000 pictures of 28 x 28 pixels in four idx files; the first 60,000 train."""
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
    return Dataset(name, X, y, num_train=len(parts[0][0]), is_class=True)


def cep(name: str, folder: Path | None) -> Dataset:
    """29,978 molecules of the Harvard Clean Energy Project: fingerprint bits and power conversion efficiency."""
    import pandas as pd

    if folder is None or not (folder / "cep.csv.gz").is_file():
        raise InputError(f"cep needs its file: set {FOLDER_VARIABLE} to a folder that holds cep.csv.gz")
    table = read_table(folder / "cep.csv.gz")
    smiles, efficiency = (table.iloc[:, position(table, part)] for part in ("smiles", "pce"))
    if smiles.isna().any():
        raise InputError(f"cep.csv.gz lacks a molecule in row {int(np.argmax(smiles.isna()))}")
    bits = fingerprints(smiles.tolist(), folder)
    X = pd.DataFrame(bits, columns=[f"bit{i}" for i in range(bits.shape[1])])
    return Dataset(name, X, efficiency)


LOADERS: dict[str, Loader] = {
    "boston": regression(OpenML(531, "MEDV", 506, 13)),
    "concrete": regression(OpenML(44959, "strength", 1030, 8)),
    "energy": regression(OpenML(44960, "heating_load", 768, 8, ("cooling_load",))),
    "energy_cooling": regression(),
    "flights": regression(),
    "kin8nm": regression(OpenML(189, "y", 8192, 8)),
    "naval": regression(),
    "power": regression(),
    "protein": regression(OpenML(44963, "RMSD", 45730, 9)),
    "wine_red": regression(OpenML(40691, "class", 1599, 11)),
    "yacht": regression(),
    "digits": digits,
    "mnist": mnist,
    "cep": cep,
}
"""All sets. A line adds one."""


def load(name: str) -> Dataset:
    """Load a benchmark data set."""
    if name not in LOADERS:
        raise InputError(f"unknown data set {name!r}: choose from {', '.join(LOADERS)}")
    folder = os.environ.get(FOLDER_VARIABLE)
    return LOADERS[name](name, Path(folder) if folder else None)
