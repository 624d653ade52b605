"""The studies by name."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from deepwell.studies.curves import run_curves
from deepwell.studies.gaussianity import run_gaussianity
from deepwell.studies.large_tables import run_table
from deepwell.studies.options import Options
from deepwell.studies.toy import run_toy
from deepwell.studies.uci import run_uci


class Study(NamedTuple):
    """``takes``: the options that mean something to it, besides those that all take."""

    run: Callable[[Options], None]
    takes: tuple[str, ...]


CURVES = ("datasets", "methods", "depths", "splits", "every")
TABLES = ("methods", "splits", "every")
STUDIES = {
    "toy": Study(run_toy, ()),
    "cep": Study(partial(run_table, "cep"), TABLES),
    "mcem": Study(partial(run_curves, "mcem"), CURVES),
    "runtime": Study(partial(run_curves, "runtime"), CURVES),
    "mnist": Study(partial(run_table, "mnist"), TABLES),
    "gaussianity": Study(run_gaussianity, ("datasets", "depths", "every")),
    "uci": Study(run_uci, ("datasets", "methods", "depths", "splits", "group_size", "every")),
}
"""Quickest first."""
