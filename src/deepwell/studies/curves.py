"""``mcem`` and ``runtime``: test log-likelihood while a method learns, against iterations and seconds.

A fit is looked at between chunks, and scored as if its burn-in ended there. The clock stands still meanwhile, and does
not see compilation either: the first chunk is run once beforehand.
"""

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.fits.fit import fit
from deepwell.fits.settings import Settings
from deepwell.inference.registry import method_named
from deepwell.predict.scores import scores
from deepwell.store.tensor_file import write_atomically
from deepwell.studies import figures
from deepwell.studies.comparison import table
from deepwell.studies.options import HOW, Options, chosen
from deepwell.studies.page import Page
from deepwell.studies.provenance import data_hash
from deepwell.studies.published import published
from deepwell.studies.rows import Row, Store
from deepwell.studies.sweep import Job, Writer, sweep_and_publish
from deepwell.studies.uci import SETS, rows_of_split

KEY = ("dataset", "depth", "method", "iteration", "split", "seed", *HOW)
LOOKS, ROUND = 20, 500
"""Looks at a fit, at most; they lie a multiple of this many iterations apart, rounded up to whole chunks."""
DRAWS: dict[str, Any] = {"num_samples": 50, "spacing": 10}
"""Samples behind a score."""


class Comparison(NamedTuple):
    """The paper's set and depth, methods by name, and the sentence above the table."""

    dataset: str
    depth: int
    methods: dict[str, dict[str, Any]]
    about: str


COMPARISONS = {
    "mcem": Comparison(
        "kin8nm",
        2,
        {
            "Moving Window MCEM": {"inference": "sghmc", "window_size": 300},
            "MCEM": {"inference": "mcem", "e_steps": 500, "e_samples": 10},
            "naive": {"inference": "sghmc-naive"},
        },
        "Moving Window MCEM (window 300 if nothing else is said), MCEM (10 samples of 500 steps, likewise) and theta "
        "following the newest sample alone.",
    ),
    "runtime": Comparison(
        "protein",
        3,
        {
            "SGHMC": {"inference": "sghmc"},
            "DSVI": {"inference": "dsvi"},
            "Decoupled DSVI": {"inference": "dsvi-decoupled"},
        },
        "Seconds without compilation and scoring.",
    ),
}


class WarmedUp(Exception):  # noqa: N818
    """The programs are compiled; the fit that made them is not needed."""


class Clock:
    """Seconds since it was set."""

    def __init__(self) -> None:
        self.set(0.0)

    def set(self, seconds: float) -> None:
        self._since = time.perf_counter() - seconds

    def read(self) -> float:
        return time.perf_counter() - self._since


def run_curves(name: str, options: Options) -> None:
    """Rows, table, figure."""
    options, study = options.of_study("paper", ("depth", "inference")), COMPARISONS[name]
    jobs = list(_jobs(options, study))
    sweep_and_publish(Store(options.folder, name, KEY), options, jobs, _in_words, partial(page, name))


def _jobs(options: Options, study: Comparison) -> Iterator[Job]:
    names = chosen("data set", options.datasets, SETS, (study.dataset,))
    depths = options.depths or ((2,) if options.smoke else (study.depth,))
    for dataset in names:
        for depth in depths:
            for method in chosen("method", options.methods, tuple(study.methods)):
                iterations = looks(options.settings_of({"depth": depth, **study.methods[method]}))
                for split in options.splits or (0,):
                    common = {"dataset": dataset, "depth": depth, "method": method, "split": split}
                    common |= {"seed": options.seed, **options.how()}
                    members = [{**common, "iteration": iteration} for iteration in iterations]
                    kind = f"{dataset}, depth {depth}, {method}"
                    title = f"{kind}, split {split}, {options.in_words()}"
                    yield Job(title, members, partial(work, options, study), kind=kind)


def looks(settings: Settings) -> list[int]:
    """Evenly spaced ends of chunks of the burn-in, its own end the last of them."""
    phase = method_named(settings.inference).phases(settings.config(1))[0]
    gap = ROUND * math.ceil(phase.iterations / (LOOKS * ROUND))
    gap = phase.chunk * math.ceil(gap / phase.chunk)
    return [*range(gap, phase.iterations, gap), phase.iterations]


def work(options: Options, study: Comparison, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """One fit, a row a look."""
    first = members[0]
    data = options.table(first["dataset"])
    X, y = data.X.to_numpy(float), data.y.to_numpy()
    train, test = rows_of_split(data, X, first["split"], first["seed"])
    settings = {"depth": first["depth"], **study.methods[first["method"]], **DRAWS, **first["settings"]}
    common = {"preset": first["preset"], "seed": first["seed"] + first["split"], **settings}
    wanted = {member["iteration"]: member for member in members}
    clock, pace = Clock(), Pace(folder / "pace.json")
    going_on = pace.read()

    def warm_up(iteration: int, model_now: Any) -> None:
        raise WarmedUp

    def look(iteration: int, model_now: Any) -> None:
        nonlocal going_on
        if going_on is not None:  # from a checkpoint: its iterations took their time
            clock.set(iteration * going_on)
            going_on = None
        seconds = clock.read()
        if iteration in wanted:
            score = scores(model_now().predict_dist(X[test]), y[test])
            write(wanted.pop(iteration), {**score, "seconds": round(seconds, 3), "data": data_hash(X, y)})
        pace.note(seconds / iteration)
        clock.set(seconds)

    with suppress(WarmedUp):
        fit(X[train], y[train], look=warm_up, **common)
    clock.set(0.0)
    fit(X[train], y[train], look=look, checkpoint=folder, every=options.every, verbose=options.verbose, **common)


class Pace:
    """Seconds an iteration so far, kept in a file for the process that goes on after this one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, seconds: float) -> None:
        write_atomically(self._path, json.dumps(seconds).encode())

    def read(self) -> float | None:
        """None if no process has begun before."""
        return json.loads(self._path.read_bytes()) if self._path.exists() else None


def page(name: str, rows: Sequence[Row]) -> Page:
    """Where each method ended, and the curves, for each set, depth, split and device, whose seconds are not those of
    another; the paper's own first."""
    study = COMPARISONS[name]
    paragraphs, sections = ["# Test log-likelihood while learning\n", f"{study.about}\n"], {}
    where = ("dataset", "depth", "split", "device")
    places = {tuple(row[name] for name in where) for row in rows}
    for place in sorted(places, key=lambda p: (p[:2] != (study.dataset, study.depth), SETS.index(p[0]), *p[1:])):
        some = [row for row in rows if tuple(row[name] for name in where) == place]
        curves = {method: _curve(some, method) for method in study.methods}
        curves = {method: curve for method, curve in curves.items() if curve}
        title = "{}, depth {}, split {}, {}".format(*place)
        sections[title] = curves
        paragraphs += [f"## {title}\n", _ends(curves)]
        if place[:2] == (study.dataset, study.depth):
            paragraphs.append(f"Paper: {_paper_says(name)}\n")
    return Page(paragraphs, figures.curves(sections, tuple(study.methods)))


def _curve(rows: Sequence[Row], method: str) -> list[Row]:
    return sorted((row for row in rows if row["method"] == method), key=lambda row: row["iteration"])


def _ends(curves: dict[str, list[Row]]) -> str:
    """A line a method: where it ended, and where it was best."""
    lines = []
    for method, curve in curves.items():
        last, best = curve[-1], max(curve, key=lambda row: row["test_log_likelihood"])
        ended = [f"{last['test_log_likelihood']:.3f}", f"{last['rmse']:.4g}", f"{last['seconds']:.0f}"]
        lines.append([method, last["iteration"], *ended, f"{best['test_log_likelihood']:.3f} at {best['iteration']}"])
    return table(["method", "iterations", "test log-likelihood", "RMSE", "seconds", "best"], lines)


def _paper_says(name: str) -> str:
    found = published()["curves"][name]
    if name == "runtime":
        return f"SGHMC reached 20,000 iterations {found['times faster']} times faster than DSVI, and a higher limit."
    return "; ".join(f"{method} about {value} after {seconds} s" for method, (value, seconds) in found.items()) + "."


def _in_words(row: Row) -> str:
    name = f"{row['dataset']}, depth {row['depth']}, {row['method']}, split {row['split']}"
    return f"{name}, iteration {row['iteration']}: {row['test_log_likelihood']:.3f} ({row['seconds']:.0f} s)"
