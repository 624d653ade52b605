"""``mnist`` and ``cep``: pictures and molecules, the large tables of the paper."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.fits.fit import fit
from deepwell.studies.benchmark_sets import load_split
from deepwell.studies.comparison import table_beside_paper
from deepwell.studies.figures import bars
from deepwell.studies.job import Job, RowWriter
from deepwell.studies.options import StudyDefaults, StudyOptions, select
from deepwell.studies.row_store import Row
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage

BATCH_SIZE = 1_000
SAMPLING = {"burn_in": 15_000, "num_samples": 100, "spacing": 50, "local": False}


class LargeTable(NamedTuple):
    """A set, the sentence above its table, the scores shown (the paper's first), and the settings of each method."""

    dataset: str
    about: str
    score_formats: dict[str, Callable[[float], str]]
    methods: dict[str, dict[str, Any]]


MNIST_TABLE = LargeTable(
    "mnist",
    "60,000 training and 10,000 test pictures, robust-max.",
    {"accuracy": "{:.2%}".format, "test_log_likelihood": "{:.3f}".format, "calibration_error": "{:.1%}".format},
    {
        "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
        "Dec SGP": {"depth": 1, "inference": "dsvi-decoupled", "burn_in": 20_000},
        "DGP 3": {"depth": 3, "inference": "dsvi", "burn_in": 20_000},
        "SGHMC DGP 3": {"depth": 3, "dsvi_start": 4_000, "objective": "predictive", **SAMPLING},
        "Dec DGP 3": {"depth": 3, "inference": "dsvi-decoupled", "burn_in": 20_000},
    },
)
CEP_TABLE = LargeTable(
    "cep",
    "29,978 molecules, 512 Morgan bits. The paper had 60,000 others, so its numbers are not comparable.",
    {"test_log_likelihood": "{:.3f}".format, "rmse": "{:.4g}".format, "coverage_95": "{:.1%}".format},
    {
        "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
        "SGHMC SGP": {"depth": 1, **SAMPLING},
        "DGP 2": {"depth": 2, "inference": "dsvi", "burn_in": 20_000},
        "DGP 5": {"depth": 5, "inference": "dsvi", "burn_in": 10_000},
        "BNN": {"inference": "bnn", **SAMPLING},
        "SGHMC DGP 2": {"depth": 2, **SAMPLING},
        "SGHMC DGP 5": {"depth": 5, **SAMPLING},
    },
)


def jobs(table: LargeTable, options: StudyOptions) -> Iterator[Job]:
    """A job for each method and split."""
    for method in select("method", options.methods, tuple(table.methods), ("SGP",) if options.smoke else None):
        options.fit_settings(table.methods[method])
        for split in options.splits or (0,):
            kind = f"{table.dataset}, {method}"
            title = f"{kind}, split {split}, {options.in_words()}"
            member = options.row(dataset=table.dataset, method=method, split=split)
            cost = table.methods[method].get("depth", 1)
            yield Job(title, [member], partial(fit_and_score, table, options), cost, kind=kind)


def fit_and_score(
    table: LargeTable, options: StudyOptions, members: Sequence[Row], folder: Path, write: RowWriter
) -> None:
    """One fit by one method."""
    for member in members:
        split = load_split(member["dataset"], member["split"], member["seed"], options.smoke)
        likelihood = {"likelihood": "robust-max"} if split.is_class else {}
        settings = {"batch_size": BATCH_SIZE, **table.methods[member["method"]], **member["settings"], **likelihood}
        model = fit(
            *split.training, preset=member["preset"], seed=member["seed"] + member["split"], checkpoint=folder,
            every=options.every, verbose=options.verbose, **settings,
        )  # fmt: skip
        write(member, split.results(model))


def draw_page(table: LargeTable, options: StudyOptions, rows: Sequence[Row]) -> StudyPage:
    """Scores beside the paper's."""
    methods = list(table.methods)
    scores = table_beside_paper(rows, table.score_formats, lambda key: methods.index(key[1]))
    figure = bars(rows, methods, next(iter(table.score_formats)))
    return StudyPage([f"# {table.dataset}\n", f"{table.about}\n", scores], figure)


def describe_row(row: Row) -> str:
    """mnist, SGP, split 0: -0.095 (391 s)."""
    name = f"{row['dataset']}, {row['method']}, split {row['split']}"
    return f"{name}: {row['test_log_likelihood']:.3f} ({row['seconds']:.0f} s)"


def _study(table: LargeTable) -> Study:
    return Study(
        name=table.dataset,
        key=("dataset", "method", "split"),
        defaults=StudyDefaults("default", own_settings=("depth", "inference", "likelihood")),
        takes=("methods", "splits", "every"),
        jobs=partial(jobs, table),
        draw_page=partial(draw_page, table),
        describe_row=describe_row,
    )


MNIST, CEP = _study(MNIST_TABLE), _study(CEP_TABLE)
