"""Average ranks of methods over data sets, ours beside the paper's."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepwell.studies.comparison import NOT_COMPARABLE, table
from deepwell.studies.published import published_figure
from deepwell.studies.rows import Row

OFTEN = 0.5
"""A method is ranked if it has at least this share of the data sets of the method that has most."""


class Ranks(NamedTuple):
    """Mean and standard deviation over data sets of each method's rank, 1 the highest mean score; on how many splits of
    which sets they rest; and the methods left out."""

    of: dict[str, tuple[float, float]]
    splits: dict[str, int]
    left_out: tuple[str, ...]


def average_ranks(rows: Sequence[Row], score: str) -> Ranks:
    """Ranks by the mean score over the splits that all ranked methods have of a set, over the sets with such splits.

    Where no set has all of them, methods are left out, the least run first, until one has.
    """
    from scipy.stats import rankdata

    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["method"]), {})[row["split"]] = row[score]
    sets, known = sorted({s for s, _ in found}), sorted({method for _, method in found})
    count = {method: sum(m == method for _, m in found) for method in known}
    methods = [method for method in known if count[method] >= OFTEN * max(count.values())]
    while methods:
        shared = {s: set.intersection(*(set(found.get((s, m), ())) for m in methods)) for s in sets}
        shared = {s: splits for s, splits in shared.items() if splits}
        if shared:
            means = [[np.mean([found[s, m][i] for i in splits]) for m in methods] for s, splits in shared.items()]
            ranks = rankdata(-np.array(means), axis=1)
            each = zip(np.mean(ranks, 0).tolist(), np.std(ranks, 0).tolist(), strict=True)
            left_out = tuple(method for method in known if method not in methods)
            return Ranks(
                dict(zip(methods, each, strict=True)), {s: len(splits) for s, splits in shared.items()}, left_out
            )
        methods.remove(min(methods, key=lambda method: count[method]))
    return Ranks({}, {}, tuple(known))


def ranks_beside_the_papers(rows: Sequence[Row], score: str) -> tuple[Ranks, Ranks]:
    """Ours and the paper's own, of the methods that the paper has too, over the same comparable sets."""
    ours = average_ranks([row for row in rows if _papers(row, score)], score)
    known = {
        (row["dataset"], row["method"]): {"dataset": row["dataset"], "method": row["method"], "split": 0}
        for row in rows
    }
    theirs = [
        {**row, score: _papers(row, score)}
        for row in known.values()
        if row["method"] in ours.of and row["dataset"] in ours.splits
    ]
    return ours, average_ranks(theirs, score)


def _papers(row: Row, score: str) -> float | None:
    found = published_figure(score, row["dataset"], row["method"])
    return None if found is None or row["dataset"] in NOT_COMPARABLE else found.mean


def ranks_table(rows: Sequence[Row], score: str) -> str:
    """Average ranks, best first, and over what; then of the methods that the paper has too, beside the paper's."""
    every, (ours, theirs) = average_ranks(rows, score), ranks_beside_the_papers(rows, score)

    def shown(ranks: Ranks, method: str) -> str:
        return "{:.2f} ± {:.2f}".format(*ranks.of[method]) if method in ranks.of else ""

    best_first = sorted(every.of, key=lambda method: every.of[method][0])
    lines = [[method, *(shown(ranks, method) for ranks in (every, ours, theirs))] for method in best_first]
    over = ", ".join(f"{name} ({splits})" for name, splits in every.splits.items()) or "no set"
    without = f" Not ranked, for want of sets: {', '.join(every.left_out)}." if every.left_out else ""
    return (
        f"Average rank by {score.replace('_', ' ')}, and its standard deviation over sets; over the splits that all "
        f"have of {over}.{without}\n\n"
    ) + table(["method", "rank", "among the paper's methods", "the paper's"], lines)
