"""Our scores beside the paper's: means over splits, z values, Markdown tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepwell.studies.paper_scores import PaperScore, comparable_score, paper_score
from deepwell.studies.row_store import Row

REPRODUCED = -2.0
"""A z above this is a reproduction; better is fine."""


class Summary(NamedTuple):
    """Mean and sample standard deviation of a score over the rows of a data set and method."""

    mean: float
    std: float
    runs: int


Cells = dict[tuple[str, str], Summary]
"""By data set and method."""


def z_value(mean: float, count: int, paper: PaperScore | None) -> float | None:
    """z = (m - p) / (d sqrt(1/n + 1/10)): our mean m over n splits, the paper's mean p and standard deviation d."""
    if paper is None or not paper.std:
        return None
    return (mean - paper.mean) / (paper.std * np.sqrt(1.0 / count + 1.0 / paper.repetitions))


def summarise(rows: Sequence[Row], score: str) -> Cells:
    """A summary of each data set and method with rows that have this score."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.get(score) is not None:
            values.setdefault((row["dataset"], row["method"]), []).append(row[score])
    return {
        key: Summary(float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else float("nan"), len(v))
        for key, v in values.items()
    }


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """The header, a rule, a line for each of ``lines``."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in (header, rule, *lines)) + "\n"


def table_beside_paper(
    rows: Sequence[Row],
    score_formats: Mapping[str, Callable[[float], str]],
    order: Callable[[tuple[str, str]], Any],
) -> str:
    """A line for each data set and method: the first score beside the paper's with z, the other scores, and the seconds
    of a run on each device, alone or as its share of a group."""
    first, *others = score_formats
    cells = {name: summarise(rows, name) for name in score_formats}
    devices = sorted({_device(row) for row in rows})
    seconds = {device: summarise([row for row in rows if _device(row) == device], "seconds") for device in devices}
    lines = []
    for key in sorted(cells[first], key=order):
        ours, paper = cells[first][key], paper_score(first, *key)
        z = z_value(ours.mean, ours.runs, comparable_score(first, *key))
        lines.append(
            [
                *key,
                ours.runs,
                spread(ours, score_formats[first]),
                "" if paper is None else spread(Summary(paper.mean, paper.std or np.nan, 10), score_formats[first]),
                "" if z is None else f"{z:+.1f}" if z > REPRODUCED else f"**{z:+.1f}**",
                *[score_formats[name](cells[name][key].mean) if key in cells[name] else "" for name in others],
                *[f"{seconds[device][key].mean:.0f}" if key in seconds[device] else "" for device in devices],
            ]
        )
    names = [name.replace("_", " ") for name in score_formats]
    timed = [f"seconds, {device}" for device in devices]
    return markdown_table(["set", "method", "runs", names[0], "paper", "z", *names[1:], *timed], lines)


def _device(row: Row) -> str:
    return row["device"] + (", in groups" if row.get("together", 1) > 1 else "")


def spread(summary: Summary, show: Callable[[float], str]) -> str:
    """The mean, and the standard deviation if it is known; both in per cent if ``show`` gives per cent."""
    mean = show(summary.mean)
    std = f"{100.0 * summary.std:.2g}%" if mean.endswith("%") else f"{summary.std:.2g}"
    return mean + ("" if np.isnan(summary.std) else f" ± {std}")
