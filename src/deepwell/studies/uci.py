"""``uci``: every method of the paper at every depth on every set, ten splits each; splits of a set run as one
program."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from deepwell.fits.group import fit_group
from deepwell.studies import figures
from deepwell.studies.benchmark_sets import UCI_SETS, load_split, relative_cost
from deepwell.studies.comparison import Cells, markdown_table, summarise, table_beside_paper
from deepwell.studies.job import Job, RowWriter
from deepwell.studies.options import REPORTED_SPLITS, StudyDefaults, StudyOptions, select
from deepwell.studies.paper_methods import DEFAULT_METHODS, PAPER_METHODS, select_methods
from deepwell.studies.ranks import ranks_table
from deepwell.studies.row_store import Row
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage
from deepwell.studies.sweep import in_groups

SCORE_FORMATS = {
    "test_log_likelihood": "{:.3f}".format,
    "rmse": "{:.4g}".format,
    "crps": "{:.4g}".format,
    "coverage_95": "{:.1%}".format,
}


def jobs(options: StudyOptions) -> Iterator[Job]:
    """A job for each group of splits of a set and method."""
    splits = list(options.splits or (REPORTED_SPLITS[:2] if options.smoke else REPORTED_SPLITS))
    methods = select_methods(options)
    for dataset in select("data set", options.datasets, tuple(UCI_SETS), ("energy",) if options.smoke else None):
        for name in methods:
            method = PAPER_METHODS[name]
            options.fit_settings(method.settings)
            for group in in_groups(splits, options.splits_per_program()):
                common = {"dataset": dataset, "method": name, "depth": method.depth, "seed": options.seed}
                members = [{**common, "split": split, **options.conditions()} for split in group]
                kind = f"{dataset}, {name}"
                title = f"{kind}, splits {', '.join(map(str, group))}, {options.in_words()}"
                cost = relative_cost(dataset) * method.cost
                yield Job(title, members, partial(fit_and_score, options), cost, at_once=True, kind=kind)


def fit_and_score(options: StudyOptions, members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """Fit splits of one set by one method as one program, and score them."""
    first = members[0]
    splits = [load_split(row["dataset"], row["split"], row["seed"], options.smoke) for row in members]
    settings = {**PAPER_METHODS[first["method"]].settings, **first["settings"]}
    models = fit_group(
        [split.training for split in splits],
        [member["seed"] + member["split"] for member in members],
        preset=first["preset"], checkpoint=folder, every=options.every, verbose=options.verbose, **settings,
    )  # fmt: skip
    for member, split, model in zip(members, splits, models, strict=True):
        if write.wants(member):
            write(member, split.results(model, together=len(members)))


def draw_page(options: StudyOptions, rows: Sequence[Row]) -> StudyPage:
    """Scores beside the paper's, average ranks, and how much has been run."""
    sets, methods = list(UCI_SETS), list(PAPER_METHODS)
    paragraphs = [
        "# UCI regression\n",
        "Mean ± standard deviation over splits, in the units of y. z compares with the paper and is bold below -2. "
        "naval is not comparable: the paper's had other columns.\n",
        table_beside_paper(rows, SCORE_FORMATS, lambda key: (sets.index(key[0]), methods.index(key[1]))),
        ranks_table(rows, "test_log_likelihood"),
        runs_table(summarise(rows, "test_log_likelihood")),
    ]
    return StudyPage(paragraphs, figures.uci(rows, sets, methods))


def runs_table(cells: Cells) -> str:
    """How many splits have been run, smallest sets first, and which of the default methods have no row yet."""
    begun = [name for name in PAPER_METHODS if any(method == name for _, method in cells)]
    lines = [[name, *[cells[s, name].runs if (s, name) in cells else "-" for s in UCI_SETS]] for name in begun]
    not_begun = ", ".join(name for name in DEFAULT_METHODS if name not in begun)
    title = f"Splits run, of {len(REPORTED_SPLITS)}; the same commands run the rest:\n\n"
    return title + markdown_table(["method", *UCI_SETS], lines) + (f"\nNot begun: {not_begun}.\n" if not_begun else "")


def describe_row(row: Row) -> str:
    """boston, SGP, split 0: -2.500, RMSE 3.1 (12 s)."""
    score = f"{row['test_log_likelihood']:.3f}, RMSE {row['rmse']:.4g}"
    return f"{row['dataset']}, {row['method']}, split {row['split']}: {score} ({row['seconds']:.0f} s)"


UCI = Study(
    name="uci",
    key=("dataset", "method", "split"),
    defaults=StudyDefaults("paper", own_settings=("depth", "inference")),
    takes=("datasets", "methods", "depths", "splits", "group_size", "every"),
    jobs=jobs,
    draw_page=draw_page,
    describe_row=describe_row,
)
