"""``uci``: every method of the paper, every depth, every set, ten splits; the splits of a set as one program."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwell.data.benchmarks import Dataset
from deepwell.data.splits import split_by_group, split_rows
from deepwell.errors import InputError
from deepwell.fits.group import fit_group
from deepwell.predict.scores import scores
from deepwell.studies import figures
from deepwell.studies.comparison import Cells, beside_the_paper, summarise, table
from deepwell.studies.options import HOW, REPORTED, Options, chosen
from deepwell.studies.page import Page
from deepwell.studies.provenance import data_hash
from deepwell.studies.ranks import ranks_table
from deepwell.studies.rows import Row, Store
from deepwell.studies.sweep import Job, Writer, in_groups, sweep_and_publish

KEY = ("dataset", "method", "split", "seed", *HOW)
SETS = ("boston", "energy", "concrete", "wine_red", "kin8nm", "power", "naval", "protein", "flights")
"""Smallest first."""
TRAINING_ROWS = (404, 614, 824, 1279, 6553, 7654, 9547, 36584, 260_000)
DEPTHS = (1, 2, 3, 4, 5)


class Method(NamedTuple):
    """A method by the paper's name: its family, its number of layers (None: a net) and our settings."""

    family: str
    depth: int | None
    settings: dict[str, Any]


def _methods() -> dict[str, Method]:
    found = {"BNN": Method("BNN", None, {"inference": "bnn"})}
    for single, deep, inference in (
        ("SGP", "DGP", "dsvi"),
        ("Dec SGP", "Dec DGP", "dsvi-decoupled"),
        ("SGHMC SGP", "SGHMC DGP", "sghmc"),
        ("SGHMC-bayes SGP", "SGHMC-bayes DGP", "sghmc-bayes"),
    ):
        for depth in DEPTHS:
            name = single if depth == 1 else f"{deep} {depth}"
            family = single if depth == 1 else deep
            found[name] = Method(family, depth, {"inference": inference, "depth": depth})
    return found


METHODS = _methods()
FAMILIES = tuple(dict.fromkeys(method.family for method in METHODS.values()))
COSTS = {"BNN": 0.6, "SGP": 1.0, "Dec SGP": 1.0, "DGP": 2.7, "Dec DGP": 2.5, "SGHMC SGP": 0.5, "SGHMC DGP": 1.0,
         "SGHMC-bayes SGP": 0.6, "SGHMC-bayes DGP": 1.2}  # fmt: skip
"""Of a layer, relative to SGHMC's; only for the time left."""
USUAL_METHODS = tuple(name for name, m in METHODS.items() if m.family not in ("SGHMC SGP", "SGHMC-bayes SGP"))


def run_uci(options: Options) -> None:
    """Rows, table, figure."""
    options = options.of_study("paper", ("depth", "inference"))
    store = Store(options.folder, "uci", KEY)
    names = chosen("data set", options.datasets, SETS, ("energy",) if options.smoke else None)
    jobs = list(_jobs(options, names, chosen_methods(options)))
    sweep_and_publish(store, options, jobs, _in_words, page)


def page(rows: Sequence[Row]) -> Page:
    """Table and figure of all rows made in this way, by this command or by earlier ones."""
    shown = {"test_log_likelihood": "{:.3f}", "rmse": "{:.4g}", "crps": "{:.4g}", "coverage_95": "{:.1%}"}
    known = list(METHODS)
    paragraphs = [
        "# UCI regression\n",
        "Mean ± standard deviation over splits, in the units of y; z against the paper, bold below -2 (naval is not "
        "comparable: the paper's had other columns).\n",
        beside_the_paper(
            rows,
            {name: form.format for name, form in shown.items()},
            "test_log_likelihood",
            lambda key: (SETS.index(key[0]), known.index(key[1])),
        ),
        ranks_table(rows, "test_log_likelihood"),
        runs_table(summarise(rows, "test_log_likelihood")),
    ]
    return Page(paragraphs, figures.uci(rows, SETS, known))


def runs_table(cells: Cells) -> str:
    """How many of the splits have been run, smallest sets first, and which of the usual methods have no row yet."""
    begun = [name for name in METHODS if any(method == name for _, method in cells)]
    lines = [[name, *[cells[s, name].runs if (s, name) in cells else "-" for s in SETS]] for name in begun]
    unbegun = ", ".join(name for name in USUAL_METHODS if name not in begun)
    title = f"Splits run, of {len(REPORTED)}; the same commands go on with the rest:\n\n"
    return title + table(["method", *SETS], lines) + (f"\nNot begun: {unbegun}.\n" if unbegun else "")


def chosen_methods(options: Options) -> list[str]:
    """By name (SGHMC DGP 2) or by family (SGHMC DGP), of the depths asked for."""
    families = [family for family in FAMILIES if family not in METHODS]
    asked = chosen("method", options.methods, (*METHODS, *families), USUAL_METHODS)
    names = [name for name, method in METHODS.items() if name in asked or method.family in asked]
    if options.smoke and options.methods is None:
        names = ["SGP", "SGHMC DGP 2"]
    if options.depths is None:
        return names
    depths = chosen("depth", options.depths, DEPTHS)
    found = [name for name in names if METHODS[name].depth in (None, *depths)]
    if not found:
        raise InputError(f"none of {', '.join(names)} has a depth of {', '.join(map(str, depths))}")
    return found


def _jobs(options: Options, names: Sequence[str], methods: Sequence[str]) -> Iterator[Job]:
    splits = list(options.splits or (REPORTED[:2] if options.smoke else REPORTED))
    for name in names:
        for method in methods:
            options.settings_of(METHODS[method].settings)
            for group in in_groups(splits, options.members_of_a_group()):
                common = {"dataset": name, "method": method, "depth": METHODS[method].depth, "seed": options.seed}
                members = [{**common, "split": split, **options.how()} for split in group]
                cost = relative_cost(name) * (METHODS[method].depth or 1) * COSTS[METHODS[method].family]
                kind = f"{name}, {method}"
                title = f"{kind}, splits {', '.join(map(str, group))}, {options.in_words()}"
                yield Job(title, members, partial(work, options), cost, at_once=True, kind=kind)


def relative_cost(name: str) -> float:
    """Of an iteration on this set, whose minibatch has 10,000 rows at most; only for the time left."""
    return min(TRAINING_ROWS[SETS.index(name)], 10_000) ** 0.75


def rows_of_split(data: Dataset, X: np.ndarray, split: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows: a random split, but of flights always the same days, as the paper's year by artist."""
    if data.name == "flights":
        return split_by_group(100 * data.X["month"].to_numpy() + data.X["day"].to_numpy())
    return split_rows(len(X), split, seed)


def work(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """Fit the splits of one set by one method, as one program, and score them."""
    first = members[0]
    data = options.table(first["dataset"])
    X, y = data.X.to_numpy(float), data.y.to_numpy()
    cut = [rows_of_split(data, X, member["split"], member["seed"]) for member in members]
    settings = {**METHODS[first["method"]].settings, **first["settings"]}
    models = fit_group(
        [(X[train], y[train]) for train, _ in cut],
        [member["seed"] + member["split"] for member in members],
        preset=first["preset"], checkpoint=folder, every=options.every, verbose=options.verbose, **settings,
    )  # fmt: skip
    data_known_by = data_hash(X, y)
    for member, (train, test), model in zip(members, cut, models, strict=True):
        if not write.wants(member):
            continue
        started = time.perf_counter()
        found = scores(model.predict_dist(X[test]), y[test])
        seconds = model.seconds + time.perf_counter() - started
        sizes = {"rows": len(train), "together": len(members), "data": data_known_by}
        write(member, {**found, "seconds": round(seconds, 2), **sizes})


def _in_words(row: Row) -> str:
    score = f"{row['test_log_likelihood']:.3f}, RMSE {row['rmse']:.4g}"
    return f"{row['dataset']}, {row['method']}, split {row['split']}: {score} ({row['seconds']:.0f} s)"
