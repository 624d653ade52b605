"""The studies by name."""

from collections.abc import Callable
from functools import partial

from deepwell.experiments.options import Options
from deepwell.experiments.study_curves import run_curves
from deepwell.experiments.study_gaussianity import run_gaussianity
from deepwell.experiments.study_tables import run_table
from deepwell.experiments.study_toy import run_toy
from deepwell.experiments.study_uci import run_uci

STUDIES: dict[str, Callable[[Options], None]] = {
    "toy": run_toy,
    "uci": run_uci,
    "gaussianity": run_gaussianity,
    "mcem": partial(run_curves, "mcem"),
    "runtime": partial(run_curves, "runtime"),
    "mnist": partial(run_table, "mnist"),
    "cep": partial(run_table, "cep"),
}
"""Quickest first."""
