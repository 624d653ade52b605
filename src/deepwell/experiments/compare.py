"""Ours beside the paper's: means over splits, z, average ranks, Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepwell.experiments.published import Figure, published_figure
from deepwell.experiments.results import Row

REPRODUCED = -2.0
"""z above this is a reproduction; better is fine."""


class Summary(NamedTuple):
    """Mean and standard deviation (of the sample) of a score over the rows of a data set and method."""

    mean: float
    std: float
    runs: int


Cells = dict[tuple[str, str], Summary]
"""By data set and method."""


NOT_COMPARABLE = ("naval",)
"""The authors' naval had other input columns."""


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


def average_ranks(rows: Sequence[Row], score: str) -> tuple[dict[str, float], dict[str, int]]:
    """Mean rank of each method, 1 the highest mean score, over the data sets, on the splits that all methods have of a
    set; and how many splits of which sets these are.

    Where no set has all methods, methods are left out, the least run first, until one has.
    """
    from scipy.stats import rankdata

    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["method"]), {})[row["split"]] = row[score]
    sets, methods = sorted({s for s, _ in found}), sorted({method for _, method in found})
    while methods:
        shared = {s: set.intersection(*(set(found.get((s, m), ())) for m in methods)) for s in sets}
        shared = {s: splits for s, splits in shared.items() if splits}
        if shared:
            means = [[np.mean([found[s, m][i] for i in splits]) for m in methods] for s, splits in shared.items()]
            ranks = np.mean(rankdata(-np.array(means), axis=1), 0)
            return dict(zip(methods, ranks.tolist(), strict=True)), {s: len(splits) for s, splits in shared.items()}
        methods.remove(min(methods, key=lambda method: sum(m == method for _, m in found)))
    return {}, {}


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
    a run took on each device."""
    first, *others = scores
    cells = {name: summarise(rows, name) for name in scores}
    devices = sorted({row["device"] for row in rows})
    seconds = {device: summarise([r for r in rows if r["device"] == device], "seconds") for device in devices}
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
                *[f"{seconds[d][key].mean:.0f}" if key in seconds[d] else "" for d in devices],
            ]
        )
    words = [name.replace("_", " ") for name in scores]
    timed = [f"seconds, {device}" for device in devices]
    return table(["set", "method", "runs", words[0], "paper", "z", *words[1:], *timed], lines)


def spread(found: Summary, show: Callable[[float], str]) -> str:
    """Mean and, if it is known, standard deviation."""
    return show(found.mean) + ("" if np.isnan(found.std) else f" ± {found.std:.2g}")


def ranks_table(rows: Sequence[Row], score: str) -> str:
    """Average ranks, best first, and over what."""
    ranks, sets = average_ranks(rows, score)
    lines = [[method, f"{rank:.2f}"] for method, rank in sorted(ranks.items(), key=lambda item: item[1])]
    over = ", ".join(f"{name} ({splits})" for name, splits in sets.items()) or "no set"
    return f"Average rank by {score.replace('_', ' ')} over the splits that all have of {over}:\n\n" + table(
        ["method", "rank"], lines
    )
