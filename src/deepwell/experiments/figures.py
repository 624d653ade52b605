"""The paper's figures, from rows: each function returns a ``Figure``, in colour-blind safe colours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepwell.experiments.compare import Cells, summarise
from deepwell.experiments.published import published_figure
from deepwell.experiments.results import Row
from deepwell.interfaces.plots import BLUE, GREY, ORANGE

GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"
ONE, MANY = "one chain", "many chains"
"""Where the draws of a test of Gaussianity come from."""
SHADES = {"BNN": GREY, "SGP": PINK, "DGP": PINK, "Dec": GREEN, "SGHMC": BLUE, "SGHMC-bayes": ORANGE}


def uci(rows: Sequence[Row], sets: Sequence[str], methods: Sequence[str]) -> Any:
    """A panel a data set, a line a method: mean and standard deviation of the test log-likelihood; the paper's in
    hollow grey."""
    from matplotlib.figure import Figure

    cells = summarise(rows, "test_log_likelihood")
    shown = [name for name in sets if any(s == name for s, _ in cells)]
    lines = [name for name in methods if any(m == name for _, m in cells)]
    columns = min(len(shown), 4)
    across = -(-len(shown) // columns)
    figure = Figure(figsize=(1.2 + 2.9 * columns, across * (0.9 + 0.24 * len(lines))), layout="constrained")
    panels = np.ravel(figure.subplots(across, columns, sharey=True, squeeze=False))
    for axes, name in zip(panels, shown, strict=False):
        _one_set(axes, cells, name, lines)
    for axes in panels[len(shown) :]:
        axes.remove()
    panels[0].errorbar([], [], fmt="o", color=BLUE, label="here")
    panels[0].errorbar([], [], fmt="s", color=GREY, mfc="white", label="paper")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(
        "test log-likelihood, mean and standard deviation over splits (higher is better)", fontsize="medium"
    )
    return figure


def _one_set(axes: Any, cells: Cells, name: str, lines: Sequence[str]) -> None:
    for place, method in enumerate(lines):
        paper = published_figure("test_log_likelihood", name, method)
        if paper is not None:
            axes.errorbar(
                paper.mean, place + 0.18, xerr=paper.std, fmt="s", color=GREY, mfc="white", markersize=4, linewidth=0.8
            )
        ours = cells.get((name, method))
        if ours is not None:
            spread = None if np.isnan(ours.std) else ours.std
            axes.errorbar(ours.mean, place - 0.18, xerr=spread, fmt="o", color=_shade(method), markersize=5)
    axes.set_yticks(range(len(lines)), lines)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_title(name)
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _shade(method: str) -> str:
    return SHADES[method.split(" ")[0]]


def curves(sections: Mapping[str, Mapping[str, Sequence[Row]]]) -> Any:
    """Test log-likelihood against iterations, and against seconds; a row of panels a section, a line a method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 0.4 + 3.4 * len(sections)), layout="constrained")
    panels = figure.subplots(len(sections), 2, sharey="row", squeeze=False)
    for pair, (title, by_method) in zip(panels, sections.items(), strict=True):
        pair[0].set_title(title, loc="left", fontsize="medium")
        _curves_of_one(pair, by_method)
    return figure


def _curves_of_one(panels: Sequence[Any], by_method: Mapping[str, Sequence[Row]]) -> None:
    for axes, along in zip(panels, ("iteration", "seconds"), strict=True):
        for (method, rows), colour, marker in zip(by_method.items(), (BLUE, ORANGE, GREEN), "os^", strict=False):
            points = [(row[along], row["test_log_likelihood"]) for row in rows]
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=4, color=colour, label=method)
        axes.set_xlabel(along)
        axes.grid(linewidth=0.4, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    found = np.array([row["test_log_likelihood"] for rows in by_method.values() for row in rows])
    if len(found) > 4:  # a bad start must not flatten the rest
        panels[0].set_ylim(np.quantile(found, 0.1) - 0.1 * np.ptp(found[found >= np.quantile(found, 0.1)]), None)
    panels[0].set_ylabel("test log-likelihood")
    panels[1].legend(frameon=False, loc="lower right")


def gaussianity(rows: Sequence[Row], threshold: float) -> Any:
    """Above: p-values of every set, by depth and by how the draws were made; below: the least Gaussian output of each
    set, with the Gaussian fitted to it."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    kinds = sorted({(row["draws"] == MANY, -row["depth"]) for row in rows})
    figure = Figure(figsize=(2.0 + 1.7 * max(len(sets), 3), 6.0), layout="constrained")
    grid = figure.add_gridspec(2, len(sets), height_ratios=(1.6, 1))
    axes = figure.add_subplot(grid[0, :])
    rng = np.random.default_rng(0)
    for number, (many, depth) in enumerate(kinds):
        draws, colour = MANY if many else ONE, (ORANGE, PINK, BLUE, SKY)[number % 4]
        label = f"depth {-depth}, {draws}" + (" (Gaussian exactly)" if depth == -1 else "")
        some = [row for row in rows if (row["draws"], -row["depth"]) == (draws, depth)]
        for row in some:
            place = sets.index(row["dataset"]) + (number + 0.5) / len(kinds) * 0.8 - 0.4
            p = np.maximum(row["p_values"], 1e-30)
            axes.scatter(place + rng.uniform(-0.07, 0.07, len(p)), p, s=6, color=colour, linewidths=0, alpha=0.7)
        axes.scatter([], [], s=14, color=colour, label=label)
    axes.axhline(threshold, color=GREY, linewidth=1, linestyle="--", label=f"threshold {threshold:.0e}")
    axes.set_yscale("log")
    axes.set_ylabel("p-value of the kurtosis test")
    axes.set_xticks(range(len(sets)), sets)
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="lower left")
    for column, name in enumerate(sets):
        some = [row for row in rows if row["dataset"] == name]
        _histogram(figure.add_subplot(grid[1, column]), max(some, key=lambda row: (row["draws"] == MANY, row["depth"])))
    return figure


def _histogram(axes: Any, row: Row) -> None:
    draws = np.asarray(row["worst_draws"])
    x = np.linspace(-4, 4, 101)
    axes.hist(draws, 24, range=(-4, 4), density=True, color=SKY, alpha=0.8)
    axes.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi), color=GREY, linewidth=1)
    axes.set_title(f"{row['dataset']}, depth {row['depth']},\n{row['draws']}, p = {row['smallest_p']:.0e}", fontsize=8)
    axes.set_yticks([])


def bars(rows: Sequence[Row], methods: Sequence[str], score: str, published_table: str) -> Any:
    """One score of every method of one table, the paper's beside it."""
    from matplotlib.figure import Figure

    cells = summarise(rows, score)
    lines = [(key, cell) for method in methods for key, cell in cells.items() if key[1] == method]
    figure = Figure(figsize=(6.0, 1.4 + 0.36 * len(lines)), layout="constrained")
    axes = figure.subplots()
    for place, (key, ours) in enumerate(lines):
        paper = published_figure(published_table, *key)
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
