"""The figure of the two-mode problem, laid out as in the paper: a column for each method, a row for each layer."""

from typing import Any

import numpy as np

from deepwell.doors.plots import BLUE, GREY, ORANGE
from deepwell.studies.row_store import Row
from deepwell.studies.toy_problem import standard_points

MODE_COLOURS = (BLUE, ORANGE)
"""Colours of mode A and mode B."""


def toy_curves(rows: list[Row], noise: float, method: str | None = None) -> np.ndarray:
    """(layer, sample, place) of the first row of this noise and method."""
    first = next(row for row in rows if row["noise_variance"] == noise and row.get("method") == method)
    return np.asarray(first["layers"])


def draw_toy(by_kind: dict[str, list[Row]], noise: float, places: np.ndarray, least_share: float) -> Any:
    """Left, the points and the occupancy; then both layers of DSVI, SGHMC, mode A and mode B."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 5.0), layout="constrained")
    panels = figure.subplots(2, 5, width_ratios=(1.25, 1, 1, 1, 1))
    _points(panels[0, 0])
    _occupancy(panels[1, 0], [row for row in by_kind["occupancy"] if row["noise_variance"] == noise], least_share)
    modes = toy_curves(by_kind["maxima"], noise)
    middle = len(places) // 2
    columns = {
        "DSVI": toy_curves(by_kind["picture"], noise, "DSVI"),
        "SGHMC": toy_curves(by_kind["picture"], noise, "SGHMC"),
        "mode A": modes[:, :1],
        "mode B": modes[:, 1:],
    }
    for column, (name, curves) in enumerate(columns.items(), start=1):
        in_a = curves[0, :, middle] > 0
        for layer in (0, 1):
            axes = panels[layer, column]
            _layer(axes, places, curves[layer], in_a)
            axes.set_ylim(*((-3.4, 3.4), (-2.9, 2.2))[layer])
            axes.set_xlabel(("x", "hidden output")[layer])
            if column == 1:
                axes.set_ylabel(("layer 1: hidden output", "layer 2: y")[layer])
        panels[0, column].set_title(name)
    return figure


def _points(axes: Any) -> None:
    axes.plot(*standard_points(), "o", color="black")
    axes.set_title("seven points")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.set_ylim(-2.9, 2.2)


def _layer(axes: Any, places: np.ndarray, curves: np.ndarray, in_a: np.ndarray) -> None:
    width, alpha = (2.0, 1.0) if len(curves) == 1 else (0.7, 0.5)
    for curve, a in zip(curves, in_a, strict=True):
        axes.plot(places, curve, color=MODE_COLOURS[0 if a else 1], linewidth=width, alpha=alpha)
    axes.grid(linewidth=0.3, alpha=0.5)


def _occupancy(axes: Any, rows: list[Row], least_share: float) -> None:
    """A dot for each run, at its share of mode A; grey if most of the run is in neither mode."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    rng = np.random.default_rng(0)
    for place, method in enumerate(methods):
        a, b = (np.array([row[f"share_of_{mode}"] for row in rows if row["method"] == method]) for mode in "ab")
        colours = np.where(a + b < 0.5, GREY, np.where(a > b, *MODE_COLOURS))
        axes.scatter(a, place + rng.uniform(-0.28, 0.28, len(a)), s=9, c=colours, alpha=0.8, linewidths=0)
        share = np.mean((a >= least_share) & (b >= least_share))
        axes.text(1.06, place, f"{share:.0%}\nboth", va="center", fontsize="small", color=GREY)
    axes.set_yticks(range(len(methods)), [method.replace(", ", ",\n") for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlim(-0.05, 1.05)
    axes.set_xlabel("share of samples in mode A, a dot a run")
