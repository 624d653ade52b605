"""The paper's figures, from rows: each function returns a ``Figure``, in colour-blind safe colours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.experiments.compare import Cells, summarise
from deepwell.experiments.published import published_figure
from deepwell.experiments.results import Row
from deepwell.interfaces.plots import BLUE, GREY, ORANGE

GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"
SHADES = {"BNN": GREY, "SGP": PINK, "DGP": PINK, "Dec": GREEN, "SGHMC": BLUE, "SGHMC-bayes": ORANGE}


def save(figure: Any, stem: Path) -> None:
    """As PNG and SVG, the same bytes for the same rows."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "deepwell"}):
        figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})


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
    figure.supxlabel("test log-likelihood (higher is better)", fontsize="medium")
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
