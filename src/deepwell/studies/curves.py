"""``mcem`` and ``runtime``: test log-likelihood while a method learns, against iterations and seconds.

The fit is interrupted between chunks and scored as if its burn-in ended there. The clock counts neither the scoring nor
compilation: the first chunk is run once beforehand.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.fits.fit import fit
from deepwell.fits.settings import Settings
from deepwell.inference.registry import method_named
from deepwell.store.tensor_file import write_atomically
from deepwell.studies import figures
from deepwell.studies.benchmark_sets import UCI_SETS, load_split
from deepwell.studies.comparison import markdown_table
from deepwell.studies.job import Job, RowWriter
from deepwell.studies.options import StudyDefaults, StudyOptions, select
from deepwell.studies.paper_scores import paper_results
from deepwell.studies.row_store import Row
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage

MOST_POINTS, ROUND_TO = 20, 500
"""Points of a curve, at most. They lie a multiple of ``ROUND_TO`` iterations apart, rounded up to whole chunks."""
SAMPLES_PER_POINT: dict[str, Any] = {"num_samples": 50, "spacing": 10}


class Comparison(NamedTuple):
    """The set and depth of the paper, the methods by name, the sentence above the table, and what the paper says of
    ``published.json``'s entry for the study."""

    name: str
    dataset: str
    depth: int
    methods: dict[str, dict[str, Any]]
    about: str
    paper_says: Callable[[dict[str, Any]], str]


MCEM_COMPARISON = Comparison(
    "mcem",
    "kin8nm",
    2,
    {
        "Moving Window MCEM": {"inference": "sghmc", "window_size": 300},
        "MCEM": {"inference": "mcem", "e_steps": 500, "e_samples": 10},
        "naive": {"inference": "sghmc-naive"},
    },
    "Moving Window MCEM (window of 300 unless set), MCEM (10 samples of 500 steps unless set), and the naive method, "
    "in which theta follows the newest sample alone.",
    lambda curves: "; ".join(f"{name} about {value} after {s} s" for name, (value, s) in curves.items()) + ".",
)
RUNTIME_COMPARISON = Comparison(
    "runtime",
    "protein",
    3,
    {
        "SGHMC": {"inference": "sghmc"},
        "DSVI": {"inference": "dsvi"},
        "Decoupled DSVI": {"inference": "dsvi-decoupled"},
    },
    "Seconds without compilation and scoring.",
    lambda curves: (
        f"SGHMC reached 20,000 iterations {curves['times faster']} times faster than DSVI, and a higher limit."
    ),
)


class WarmedUp(Exception):  # noqa: N818
    """The programs are compiled; the fit that compiled them is not needed."""


class Clock:
    """A clock that can be set."""

    def __init__(self) -> None:
        self.set(0.0)

    def set(self, seconds: float) -> None:
        """Go on from so many seconds."""
        self._zero = time.perf_counter() - seconds

    def read(self) -> float:
        """Seconds since zero."""
        return time.perf_counter() - self._zero


class IterationSeconds:
    """Seconds an iteration so far, kept in a file for a process that resumes this one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, seconds: float) -> None:
        """Keep the newest value."""
        write_atomically(self._path, json.dumps(seconds).encode())

    def read(self) -> float | None:
        """The value of an earlier process, or None."""
        return json.loads(self._path.read_bytes()) if self._path.exists() else None


def jobs(comparison: Comparison, options: StudyOptions) -> Iterator[Job]:
    """A job for each curve."""
    datasets = select("data set", options.datasets, tuple(UCI_SETS), (comparison.dataset,))
    methods = select("method", options.methods, tuple(comparison.methods))
    for dataset in datasets:
        for depth in options.depths or ((2,) if options.smoke else (comparison.depth,)):
            for method in methods:
                iterations = scored_iterations(options.fit_settings({"depth": depth, **comparison.methods[method]}))
                for split in options.splits or (0,):
                    common = options.row(dataset=dataset, depth=depth, method=method, split=split)
                    members = [{**common, "iteration": iteration} for iteration in iterations]
                    kind = f"{dataset}, depth {depth}, {method}"
                    title = f"{kind}, split {split}, {options.in_words()}"
                    yield Job(title, members, partial(trace_curve, comparison, options), kind=kind)


def scored_iterations(settings: Settings) -> list[int]:
    """Evenly spaced ends of chunks of the burn-in, the last one its own end."""
    phase = method_named(settings.inference).phases(settings.config(1))[0]
    gap = ROUND_TO * math.ceil(phase.iterations / (MOST_POINTS * ROUND_TO))
    gap = phase.chunk * math.ceil(gap / phase.chunk)
    return [*range(gap, phase.iterations, gap), phase.iterations]


def trace_curve(
    comparison: Comparison, options: StudyOptions, members: Sequence[Row], folder: Path, write: RowWriter
) -> None:
    """One fit, a row a point of its curve."""
    first = members[0]
    split = load_split(first["dataset"], first["split"], first["seed"], options.smoke)
    settings = {"depth": first["depth"], **comparison.methods[first["method"]], **SAMPLES_PER_POINT}
    settings |= {**first["settings"], "preset": first["preset"], "seed": first["seed"] + first["split"]}
    wanted = {member["iteration"]: member for member in members}
    clock, iteration_seconds = Clock(), IterationSeconds(folder / "pace.json")
    earlier = iteration_seconds.read()

    def stop(iteration: int, model_now: Any) -> None:
        raise WarmedUp

    def score(iteration: int, model_now: Any) -> None:
        nonlocal earlier
        if earlier is not None:  # the fit resumed from a checkpoint, whose iterations took this time
            clock.set(iteration * earlier)
            earlier = None
        seconds = clock.read()
        if iteration in wanted:
            results = split.test_scores(model_now())
            write(wanted.pop(iteration), {**results, "seconds": round(seconds, 3), "data": split.hash})
        iteration_seconds.write(seconds / iteration)
        clock.set(seconds)

    with suppress(WarmedUp):
        fit(*split.training, monitor=stop, **settings)
    clock.set(0.0)
    fit(*split.training, monitor=score, checkpoint=folder, every=options.every, verbose=options.verbose, **settings)


def draw_page(comparison: Comparison, options: StudyOptions, rows: Sequence[Row]) -> StudyPage:
    """A section for each set, depth, split and device, as seconds of different devices do not compare; the paper's set
    and depth first."""
    papers_own = (comparison.dataset, comparison.depth)
    paragraphs, sections = ["# Test log-likelihood while learning\n", f"{comparison.about}\n"], {}
    sets, fields = list(UCI_SETS), ("dataset", "depth", "split", "device")
    section_keys = {tuple(row[name] for name in fields) for row in rows}
    for key in sorted(section_keys, key=lambda key: (key[:2] != papers_own, sets.index(key[0]), *key[1:])):
        section_rows = [row for row in rows if tuple(row[name] for name in fields) == key]
        curves = {method: _curve(section_rows, method) for method in comparison.methods}
        curves = {method: curve for method, curve in curves.items() if curve}
        title = "{}, depth {}, split {}, {}".format(*key)
        sections[title] = curves
        paragraphs += [f"## {title}\n", _ends_table(curves)]
        if key[:2] == papers_own:
            paragraphs.append(f"Paper: {comparison.paper_says(paper_results()['curves'][comparison.name])}\n")
    return StudyPage(paragraphs, figures.curves(sections, tuple(comparison.methods)))


def _curve(rows: Sequence[Row], method: str) -> list[Row]:
    return sorted((row for row in rows if row["method"] == method), key=lambda row: row["iteration"])


def _ends_table(curves: dict[str, list[Row]]) -> str:
    """A line a method: its last point and its best."""
    lines = []
    for method, curve in curves.items():
        last, best = curve[-1], max(curve, key=lambda row: row["test_log_likelihood"])
        end = [f"{last['test_log_likelihood']:.3f}", f"{last['rmse']:.4g}", f"{last['seconds']:.0f}"]
        lines.append([method, last["iteration"], *end, f"{best['test_log_likelihood']:.3f} at {best['iteration']}"])
    return markdown_table(["method", "iterations", "test log-likelihood", "RMSE", "seconds", "best"], lines)


def describe_row(row: Row) -> str:
    """kin8nm, depth 2, MCEM, split 0, iteration 1000: 1.200 (30 s)."""
    name = f"{row['dataset']}, depth {row['depth']}, {row['method']}, split {row['split']}"
    return f"{name}, iteration {row['iteration']}: {row['test_log_likelihood']:.3f} ({row['seconds']:.0f} s)"


def _study(comparison: Comparison) -> Study:
    return Study(
        name=comparison.name,
        key=("dataset", "depth", "method", "iteration", "split"),
        defaults=StudyDefaults("paper", own_settings=("depth", "inference")),
        takes=("datasets", "methods", "depths", "splits", "every"),
        jobs=partial(jobs, comparison),
        draw_page=partial(draw_page, comparison),
        describe_row=describe_row,
    )


MCEM, RUNTIME = _study(MCEM_COMPARISON), _study(RUNTIME_COMPARISON)
