"""The paper's figures from rows, in colour-blind safe colours. Each function returns a matplotlib ``Figure``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepwell.doors.plots import BLUE, GREY, ORANGE
from deepwell.studies.comparison import summarise
from deepwell.studies.paper_scores import NOT_COMPARABLE, comparable_score
from deepwell.studies.ranks import ranks_beside_paper
from deepwell.studies.row_store import Row

GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"
ONE, MANY = "one chain", "many chains"
"""Where the draws of the test of Gaussianity come from."""
LEAST_P = 1e-30
"""Smaller p-values are marked at the bottom."""
Spread = tuple[float, float]
"""A mean and a standard deviation, which may be NaN."""
SHADES = {"BNN": GREY, "SGP": PINK, "DGP": PINK, "Dec": GREEN, "SGHMC": BLUE, "SGHMC-bayes": ORANGE}


def uci(rows: Sequence[Row], sets: Sequence[str], methods: Sequence[str]) -> Any:
    """Mean and standard deviation of the test log-likelihood, the paper's in hollow grey.

    A panel for each data set with at least two methods, a line for each method; the last panel shows average ranks
    among the paper's methods.
    """
    from matplotlib.figure import Figure

    score = "test_log_likelihood"
    cells = summarise(rows, score)
    count = {name: sum(s == name for s, _ in cells) for name in sets}
    shown = [name for name in sets if count[name] > 1] or [name for name in sets if count[name]]
    lines = [name for name in methods if any(key == (s, name) for key in cells for s in shown)]
    columns = min(len(shown) + 1, 4)
    across = -(-(len(shown) + 1) // columns)
    figure = Figure(figsize=(1.2 + 2.9 * columns, across * (0.9 + 0.24 * len(lines))), layout="constrained")
    panels = np.ravel(figure.subplots(across, columns, sharey=True, squeeze=False))
    for axes, name in zip(panels, shown, strict=False):
        comparable = name not in NOT_COMPARABLE
        papers = {method: comparable_score(score, name, method) for method in lines}
        here = {method: cell[:2] for (s, method), cell in cells.items() if s == name}
        theirs = {method: (paper.mean, paper.std or np.nan) for method, paper in papers.items() if paper}
        _one_panel(axes, name + ("" if comparable else " (the paper's was another)"), lines, here, theirs)
    ranked, papers_ranked = ranks_beside_paper(rows, score)
    title = f"average rank, {len(ranked.splits)} sets (1 is best)"
    _one_panel(panels[len(shown)], title, lines, ranked.by_method, papers_ranked.by_method)
    for axes in panels[len(shown) + 1 :]:
        axes.remove()
    panels[0].errorbar([], [], fmt="o", color=BLUE, label="here")
    panels[0].errorbar([], [], fmt="s", color=GREY, mfc="white", label="paper")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    runs = sorted({cells[key].runs for key in cells if key[0] in shown})
    counted = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else runs[0]
    title = f"test log-likelihood, mean and standard deviation over {counted} splits here, 10 in the paper"
    figure.suptitle(f"{title} (higher is better; long bars are cut)", fontsize="medium")
    return figure


def _one_panel(
    axes: Any, title: str, lines: Sequence[str], here: Mapping[str, Spread], paper: Mapping[str, Spread]
) -> None:
    """On the line of each method ours above the paper's. The axis fits the means and typical spreads."""
    for place, method in enumerate(lines):
        for spreads, above, style in (
            (paper, 0.18, {"fmt": "s", "color": GREY, "mfc": "white", "markersize": 4, "linewidth": 0.8}),
            (here, -0.18, {"fmt": "o", "color": _shade(method), "markersize": 5}),
        ):
            if method in spreads:
                mean, spread = spreads[method]
                axes.errorbar(mean, place + above, xerr=None if np.isnan(spread) else spread, **style)
    every = np.array([each for spreads in (here, paper) for each in spreads.values()]).reshape(-1, 2)
    if len(np.unique(every[:, 0])) > 1:
        usual = np.nanmedian(every[:, 1]) if np.any(np.isfinite(every[:, 1])) else 0.0
        margin = max(0.1 * np.ptp(every[:, 0]), 1.2 * usual)
        axes.set_xlim(np.min(every[:, 0]) - margin, np.max(every[:, 0]) + margin)
    axes.set_yticks(range(len(lines)), lines)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_title(title, fontsize="medium")
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _shade(method: str) -> str:
    return SHADES[method.split(" ")[0]]


def curves(sections: Mapping[str, Mapping[str, Sequence[Row]]], methods: Sequence[str]) -> Any:
    """Test log-likelihood against iterations and against seconds: two panels a section, a line a method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 0.4 + 3.4 * len(sections)), layout="constrained")
    panels = figure.subplots(len(sections), 2, sharey="row", squeeze=False)
    styles = dict(zip(methods, zip((BLUE, ORANGE, GREEN), "os^", strict=True), strict=True))
    for pair, (title, by_method) in zip(panels, sections.items(), strict=True):
        pair[0].set_title(f"{title}, one run each", loc="left", fontsize="medium")
        _curves_of_one(pair, by_method, styles)
    return figure


def _curves_of_one(
    panels: np.ndarray, by_method: Mapping[str, Sequence[Row]], styles: Mapping[str, tuple[str, str]]
) -> None:
    for axes, along in zip(panels, ("iteration", "seconds"), strict=True):
        for method, rows in by_method.items():
            colour, marker = styles[method]
            points = [(row[along], row["test_log_likelihood"]) for row in rows]
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=4, color=colour, label=method)
        axes.set_xlabel(along)
        axes.grid(linewidth=0.4, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    values = np.array([row["test_log_likelihood"] for rows in by_method.values() for row in rows])
    if len(values) > 4:  # a bad start must not flatten the rest
        floor = np.quantile(values, 0.1) - 0.1 * np.ptp(values[values >= np.quantile(values, 0.1)])
        panels[0].set_ylim(floor, None)
        panels[0].text(
            0.99, 0.02, _text_on_points_below(by_method, floor), transform=panels[0].transAxes, ha="right", fontsize=7,
            color=GREY, bbox={"color": "white", "alpha": 0.8},
        )  # fmt: skip
    panels[0].set_ylabel("test log-likelihood")
    panels[1].legend(frameon=False)


def _text_on_points_below(by_method: Mapping[str, Sequence[Row]], floor: float) -> str:
    """A line for each method with points below the axis."""
    lines = []
    for method, rows in by_method.items():
        below = [row for row in rows if row["test_log_likelihood"] < floor]
        if below:
            least = min(row["test_log_likelihood"] for row in below)
            lines.append(f"{method}: from {least:.3g}, below the axis until {below[-1]['iteration']:,}")
    return "\n".join(lines)


def gaussianity(rows: Sequence[Row], threshold: float) -> Any:
    """Top: p-values of each set, by depth (colour) and by where the draws come from (marker).

    Bottom: the least Gaussian output of each set's deepest model, from many chains, and the Gaussian fitted to it.
    """
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    depths = sorted({row["depth"] for row in rows})
    shades = dict(zip(depths, (PINK, BLUE, ORANGE, GREEN, GREY), strict=False))
    kinds = [(draws, depth) for draws in (ONE, MANY) for depth in reversed(depths)]
    figure = Figure(figsize=(2.0 + 1.7 * max(len(sets), 3), 6.4), layout="constrained")
    grid = figure.add_gridspec(2, len(sets), height_ratios=(1.6, 1))
    axes = figure.add_subplot(grid[0, :])
    rng = np.random.default_rng(0)
    for number, (draws, depth) in enumerate(kinds):
        marker, colour = "x" if draws == ONE else "o", shades[depth]
        style = {"color": colour, "linewidths": 0.7 if draws == ONE else 0.0, "alpha": 0.8}
        label = f"depth {depth}, {draws}" + (" (Gaussian exactly)" if depth == 1 else "")
        for row in (row for row in rows if (row["draws"], row["depth"]) == (draws, depth)):
            place = sets.index(row["dataset"]) + (number + 0.5) / len(kinds) * 0.8 - 0.4
            p = np.asarray(row["p_values"])
            across = place + rng.uniform(-0.07, 0.07, len(p))
            seen = p >= LEAST_P
            axes.scatter(across[seen], p[seen], s=9, marker=marker, **style)
            axes.scatter(across[~seen], np.full(np.sum(~seen), LEAST_P), s=16, marker="v", color=colour, linewidths=0)
        axes.scatter([], [], s=18, marker=marker, label=label, **style)
    axes.axhline(threshold, color=GREY, linewidth=1, linestyle="--", label=f"threshold {threshold:.0e}")
    axes.scatter([], [], s=16, marker="v", color=GREY, label=f"below {LEAST_P:.0e}")
    axes.set_yscale("log")
    axes.set_ylabel("p-value of the kurtosis test")
    axes.set_xticks(range(len(sets)), sets)
    figure.legend(frameon=False, fontsize="small", ncols=3, loc="outside upper center")
    for column, name in enumerate(sets):
        some = [row for row in rows if row["dataset"] == name]
        _histogram(figure.add_subplot(grid[1, column]), max(some, key=lambda row: (row["draws"] == MANY, row["depth"])))
    figure.supxlabel("standardised inducing output, the least Gaussian of those tested, and N(0, 1)", fontsize="small")
    return figure


def _histogram(axes: Any, row: Row) -> None:
    draws = np.asarray(row["worst_draws"])
    x = np.linspace(-4, 4, 101)
    axes.hist(draws, 24, density=True, color=SKY, alpha=0.8)
    axes.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi), color=GREY, linewidth=1)
    axes.set_title(f"{row['dataset']}, depth {row['depth']},\n{row['draws']}, p = {row['smallest_p']:.0e}", fontsize=8)
    axes.set_yticks([])


def bars(rows: Sequence[Row], methods: Sequence[str], score: str) -> Any:
    """One score of each method of one table, beside the paper's."""
    from matplotlib.figure import Figure

    cells = summarise(rows, score)
    lines = [(key, cell) for method in methods for key, cell in cells.items() if key[1] == method]
    figure = Figure(figsize=(6.0, 1.4 + 0.36 * len(lines)), layout="constrained")
    axes = figure.subplots()
    for place, (key, ours) in enumerate(lines):
        paper = comparable_score(score, *key)
        if paper is not None:
            axes.plot(paper.mean, place + 0.15, "s", color=GREY, mfc="white", label="paper")
        axes.plot(ours.mean, place - 0.15, "o", color=_shade(key[1]), label="here")
    axes.set_yticks(range(len(lines)), [key[1] for key, _ in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel(score.replace("_", " "))
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    by_label = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=2, frameon=False)
    return figure
