"""Plots: each function draws one result on the ``Axes`` it is given, in colours safe for the colour-blind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepwell.predict.calibration import Calibration, Reliability
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.depth_comparison import DepthComparison
from deepwell.predict.mixture import Mixture
from deepwell.predict.relevance import Relevance
from deepwell.predict.slices import InputSlice

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"
PALETTE = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MOST_BARS = 20


def predicted_against_observed(axes: Any, prediction: Any, y: np.ndarray, name: str = "y") -> None:
    """Predictive mean against y with 95 % intervals; rows outside their interval are orange."""
    lower, upper = prediction.interval(0.95)
    mean = prediction.mean
    inside = (y >= lower) & (y <= upper)
    for chosen, colour, label in ((inside, BLUE, "inside"), (~inside, ORANGE, "outside")):
        if np.any(chosen):
            below, above = (np.maximum(gap[chosen], 0.0) for gap in (mean - lower, upper - mean))
            axes.errorbar(
                y[chosen], mean[chosen], yerr=[below, above], fmt="o",
                markersize=3, linewidth=0.6, alpha=0.7, color=colour, label=f"{label} 95 % ({np.mean(chosen):.0%})",
            )  # fmt: skip
    ends = [min(np.min(y), np.min(mean)), max(np.max(y), np.max(mean))]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.set_xlabel(f"observed {name}")
    axes.set_ylabel(f"predicted {name}")
    axes.legend(edgecolor="none", framealpha=0.8, fontsize="small", loc="upper left")


def coverage(axes: Any, prediction: Any, y: np.ndarray) -> None:
    """Share of y inside central intervals against their level; on the diagonal if calibrated."""
    coverage_curve(axes, prediction.calibration(y))


def coverage_curve(axes: Any, judged: Calibration) -> None:
    """The same, from a calibration."""
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(judged.levels, judged.coverage, color=BLUE, linewidth=2)
    axes.set_xlabel("level of the interval")
    axes.set_ylabel("share of observations inside")


def pit_histogram(axes: Any, judged: Calibration) -> None:
    """F(y) of every value: flat if calibrated, a hump if intervals are too wide, a bowl if they are too narrow."""
    bins = int(np.clip(len(judged.pit) // 15, 5, 20))
    counts, edges = np.histogram(judged.pit, bins, (0.0, 1.0))
    expected = len(judged.pit) / bins
    band = 2.0 * np.sqrt(expected * (1.0 - 1.0 / bins))
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=BLUE, alpha=0.7, edgecolor="white")
    axes.axhspan(max(expected - band, 0.0), expected + band, color=GREY, alpha=0.2, linewidth=0)
    axes.axhline(expected, color=GREY, linewidth=1)
    axes.set_xlabel("probability integral transform, F(y)")
    axes.set_ylabel("observations")


def reliability(axes: Any, bins: Reliability) -> None:
    """Accuracy against confidence, in bins; on the diagonal if calibrated."""
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    spread = np.sqrt(np.maximum(bins.accuracy * (1.0 - bins.accuracy), 1e-3) / bins.rows)
    axes.errorbar(bins.confidence, bins.accuracy, yerr=2.0 * spread, fmt="o-", color=BLUE, linewidth=1)
    axes.set_xlabel("confidence")
    axes.set_ylabel("share of correct answers")


def relevance(axes: Any, slopes: Relevance, names: Sequence[str]) -> None:
    """The most relevant inputs, with two posterior standard deviations."""
    order = np.argsort(slopes.mean)[::-1][:MOST_BARS][::-1]
    axes.barh(
        range(len(order)), slopes.mean[order], xerr=2.0 * slopes.spread[order], color=BLUE, alpha=0.7, ecolor=GREY
    )
    axes.set_yticks(range(len(order)), [names[i] for i in order])
    axes.set_xlabel("slope of the prediction (in standard deviations)")


def hidden_layer(
    axes: Any, x: np.ndarray, outputs: np.ndarray, name: str, unit: int = 0, layer: int = 1, draws: int = 20
) -> None:
    """One output of a hidden layer against one input, under several posterior samples."""
    order = np.argsort(x)
    for sample in outputs[np.linspace(0, len(outputs) - 1, min(draws, len(outputs))).astype(int)]:
        axes.plot(x[order], sample[order, unit], ".", color=BLUE, markersize=2, alpha=0.4)
    axes.set_xlabel(name)
    axes.set_ylabel(f"output {unit + 1} of layer {layer}")


def curve(axes: Any, x: np.ndarray, prediction: Mixture, draws: int = 0) -> None:
    """Mean, 50 % and 95 % bands along one input, and some draws of the noise-free function."""
    if draws:
        functions = prediction.scaling.restore(prediction.means)[..., 0]
        for row in functions[np.linspace(0, len(functions) - 1, draws).astype(int)]:
            axes.plot(x, row, color=GREY, linewidth=0.5, alpha=0.6)
    _bands(axes, x, prediction, ...)


def slice_bands(axes: Any, along: InputSlice, target: int = 0) -> None:
    """A slice: mean, 50 % and 95 % bands of one target; or the probabilities of the first six classes."""
    if isinstance(along.prediction, ClassProbabilities):
        for i, label in enumerate(along.prediction.classes[: len(PALETTE)]):
            axes.plot(along.x, along.prediction.probabilities[:, i], color=PALETTE[i], linewidth=2, label=str(label))
        axes.set_ylim(-0.02, 1.02)
        axes.set_ylabel("probability")
        axes.legend(frameon=False, fontsize="small")
    else:
        _bands(axes, along.x, along.prediction, ... if along.prediction.mean.ndim == 1 else (..., target))
        axes.set_ylabel(along.target_names[target])
    axes.set_xlabel(along.name)


def _bands(axes: Any, x: np.ndarray, prediction: Any, chosen: Any) -> None:
    for level, alpha in ((0.95, 0.15), (0.5, 0.3)):
        lower, upper = prediction.interval(level)
        label = f"{level:.0%} of y"
        axes.fill_between(x, lower[chosen], upper[chosen], color=BLUE, alpha=alpha, linewidth=0, label=label)
    axes.plot(x, prediction.mean[chosen], color=BLUE, linewidth=2, label="mean")


def depths(axes: Any, comparison: DepthComparison) -> None:
    """Log density per row of each depth minus that of the best, with two standard errors of the difference."""
    places = np.arange(len(comparison.depths))
    axes.axhline(0.0, color=GREY, linewidth=1)
    axes.errorbar(
        places, comparison.difference, yerr=2.0 * comparison.standard_error, fmt="o", color=BLUE, ecolor=GREY, capsize=4
    )
    enough = comparison.depths.index(comparison.enough)
    axes.plot(
        enough, comparison.difference[enough], "o", color=ORANGE, markersize=9, label="shallowest sufficient depth"
    )
    axes.set_xticks(places, [str(depth) for depth in comparison.depths])
    axes.set_xlabel("depth")
    axes.set_ylabel("log density per row, minus the best")
    axes.legend(frameon=False, fontsize="small")


def trace(axes: Any, points: Sequence[tuple[int, float]]) -> None:
    """Mean log-likelihood per training row over the iterations of the fit."""
    iterations, values = np.asarray(points).T
    axes.plot(iterations, values, color=BLUE, linewidth=1)
    settled = values[len(values) // 4 :]
    axes.set_ylim(np.min(settled) - 0.1 * np.ptp(settled) - 1e-3, np.max(settled) + 0.1 * np.ptp(settled) + 1e-3)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("iteration")
    axes.set_ylabel("log-likelihood per training row")


def chains(axes: Any, values: np.ndarray) -> None:
    """One function value over the draws of each chain, (chain, draw); chains that agree overlap."""
    for i, chain in enumerate(values):
        axes.plot(chain, color=PALETTE[i % len(PALETTE)], linewidth=0.8, alpha=0.8, label=f"chain {i + 1}")
    axes.set_xlabel("draw")
    axes.set_ylabel("function value (standard units)")
    if len(values) > 1:
        axes.legend(frameon=False, fontsize="small")
