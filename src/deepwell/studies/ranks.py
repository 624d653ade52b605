"""Average ranks of methods over data sets, ours beside the paper's."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepwell.studies.comparison import markdown_table
from deepwell.studies.paper_scores import comparable_score
from deepwell.studies.row_store import Row

LEAST_SHARE = 0.5
"""A method is ranked if it has at least this share of the data sets of the method that has most."""


class Ranks(NamedTuple):
    """Each method's rank, 1 being the highest mean score, as mean and standard deviation over data sets; the number of
    splits behind each set; and the methods left out."""

    by_method: dict[str, tuple[float, float]]
    splits: dict[str, int]
    left_out: tuple[str, ...]


def average_ranks(rows: Sequence[Row], score: str) -> Ranks:
    """Rank by the mean score over the splits of a set that all ranked methods have, over the sets with such splits.

    While no set has all methods, the method with the fewest sets is left out.
    """
    from scipy.stats import rankdata

    scores: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        scores.setdefault((row["dataset"], row["method"]), {})[row["split"]] = row[score]
    sets, known = sorted({s for s, _ in scores}), sorted({method for _, method in scores})
    count = {method: sum(m == method for _, m in scores) for method in known}
    methods = [method for method in known if count[method] >= LEAST_SHARE * max(count.values())]
    while methods:
        shared = {s: set.intersection(*(set(scores.get((s, m), ())) for m in methods)) for s in sets}
        shared = {s: splits for s, splits in shared.items() if splits}
        if shared:
            means = [[np.mean([scores[s, m][i] for i in splits]) for m in methods] for s, splits in shared.items()]
            ranks = rankdata(-np.array(means), axis=1)
            spreads = zip(np.mean(ranks, 0).tolist(), np.std(ranks, 0).tolist(), strict=True)
            left_out = tuple(method for method in known if method not in methods)
            counts = {s: len(splits) for s, splits in shared.items()}
            return Ranks(dict(zip(methods, spreads, strict=True)), counts, left_out)
        methods.remove(min(methods, key=lambda method: count[method]))
    return Ranks({}, {}, tuple(known))


def ranks_beside_paper(rows: Sequence[Row], score: str) -> tuple[Ranks, Ranks]:
    """Our ranks and the paper's, of the methods that both have, over the same comparable sets."""
    ours = average_ranks([row for row in rows if comparable_score(score, row["dataset"], row["method"])], score)
    ranked = dict.fromkeys(
        (row["dataset"], row["method"])
        for row in rows
        if row["method"] in ours.by_method and row["dataset"] in ours.splits
    )
    papers = {key: comparable_score(score, *key) for key in ranked}
    rows_of_paper = [
        {"dataset": s, "method": m, "split": 0, score: paper.mean} for (s, m), paper in papers.items() if paper
    ]
    return ours, average_ranks(rows_of_paper, score)


def ranks_table(rows: Sequence[Row], score: str) -> str:
    """Average ranks, best first, with the splits behind them; then ours and the paper's among the paper's methods."""
    overall, (ours, papers) = average_ranks(rows, score), ranks_beside_paper(rows, score)

    def shown(ranks: Ranks, method: str) -> str:
        return "{:.2f} ± {:.2f}".format(*ranks.by_method[method]) if method in ranks.by_method else ""

    best_first = sorted(overall.by_method, key=lambda method: overall.by_method[method][0])
    lines = [[method, *(shown(ranks, method) for ranks in (overall, ours, papers))] for method in best_first]
    splits = ", ".join(f"{name} ({count})" for name, count in overall.splits.items()) or "no set"
    left_out = f" Not ranked, as they have too few sets: {', '.join(overall.left_out)}." if overall.left_out else ""
    title = (
        f"Average rank by {score.replace('_', ' ')} and its standard deviation over sets, on the splits that all "
        f"methods have: {splits}.{left_out}\n\n"
    )
    return title + markdown_table(["method", "rank", "among the paper's methods", "the paper's"], lines)
