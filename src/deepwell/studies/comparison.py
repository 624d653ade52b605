"""Ours beside the paper's: means over splits, z, Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepwell.studies.published import Figure, published_figure
from deepwell.studies.rows import Row

REPRODUCED = -2.0
"""z above this is a reproduction; better is fine."""


class Summary(NamedTuple):
    """Mean and standard deviation (of the sample) of a score over the rows of a data set and method."""

    mean: float
    std: float
    runs: int


Cells = dict[tuple[str, str], Summary]
"""By data set and method."""


NOT_COMPARABLE = ("naval", "cep")
"""The authors' naval had other input columns, and their molecules were others."""


def z_value(mean: float, count: int, paper: Figure | None) -> float | None:
    """z = (m - p) / (d sqrt(1/n + 1/10)): ours m over n splits, published mean p and standard deviation d over 10."""
    if paper is None or not paper.std:
        return None
    return (mean - paper.mean) / (paper.std * np.sqrt(1.0 / count + 1.0 / paper.repetitions))


def summarise(rows: Sequence[Row], score: str) -> Cells:
    """Of every data set and method that has rows with this score."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.get(score) is not None:
            found.setdefault((row["dataset"], row["method"]), []).append(row[score])
    return {
        key: Summary(float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else float("nan"), len(v))
        for key, v in found.items()
    }


def table(header: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in (header, rule, *lines)) + "\n"


def beside_the_paper(
    rows: Sequence[Row],
    scores: Mapping[str, Callable[[float], str]],
    published_table: str,
    order: Callable[[tuple[str, str]], Any],
) -> str:
    """A line a data set and method: the first score beside the paper's and z, the other scores, and the seconds that
    a run took on each device, alone or as its share of a group."""
    first, *others = scores
    cells = {name: summarise(rows, name) for name in scores}
    places = sorted({_ran_on(row) for row in rows})
    seconds = {place: summarise([row for row in rows if _ran_on(row) == place], "seconds") for place in places}
    lines = []
    for key in sorted(cells[first], key=order):
        ours, paper = cells[first][key], published_figure(published_table, *key)
        z = None if key[0] in NOT_COMPARABLE else z_value(ours.mean, ours.runs, paper)
        lines.append(
            [
                *key,
                ours.runs,
                spread(ours, scores[first]),
                "" if paper is None else spread(Summary(paper.mean, paper.std or float("nan"), 10), scores[first]),
                "" if z is None else f"{z:+.1f}" if z > REPRODUCED else f"**{z:+.1f}**",
                *[scores[name](cells[name][key].mean) if key in cells[name] else "" for name in others],
                *[f"{seconds[place][key].mean:.0f}" if key in seconds[place] else "" for place in places],
            ]
        )
    words = [name.replace("_", " ") for name in scores]
    timed = [f"seconds, {place}" for place in places]
    return table(["set", "method", "runs", words[0], "paper", "z", *words[1:], *timed], lines)


def _ran_on(row: Row) -> str:
    return row["device"] + (", in groups" if row.get("together", 1) > 1 else "")


def spread(found: Summary, show: Callable[[float], str]) -> str:
    """Mean and, if it is known, standard deviation, both in per cent if the mean is shown so."""
    mean = show(found.mean)
    std = f"{100.0 * found.std:.2g}%" if mean.endswith("%") else f"{found.std:.2g}"
    return mean + ("" if np.isnan(found.std) else f" ± {std}")
