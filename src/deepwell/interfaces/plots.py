"""Pictures of predictions: each function draws on the ``Axes`` it is given, in colour-blind safe colours."""

from typing import Any

import numpy as np

from deepwell.predict.mixture import Mixture

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"


def predicted_against_observed(axes: Any, prediction: Mixture, y: np.ndarray, name: str = "y") -> None:
    """Predictive mean against the truth, with 95 % intervals; points off the diagonal's bars stand out."""
    lower, upper = prediction.interval(0.95)
    mean = prediction.mean
    inside = (y >= lower) & (y <= upper)
    for chosen, colour, label in ((inside, BLUE, "inside"), (~inside, ORANGE, "outside")):
        if np.any(chosen):
            axes.errorbar(
                y[chosen], mean[chosen], yerr=[(mean - lower)[chosen], (upper - mean)[chosen]], fmt="o",
                markersize=3, linewidth=0.6, alpha=0.7, color=colour, label=f"{label} 95 % ({np.mean(chosen):.0%})",
            )  # fmt: skip
    ends = [min(np.min(y), np.min(mean)), max(np.max(y), np.max(mean))]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.set_xlabel(f"observed {name}")
    axes.set_ylabel(f"predicted {name}")
    axes.legend(frameon=False, fontsize="small")


def coverage(axes: Any, prediction: Mixture, y: np.ndarray) -> None:
    """Share of y inside central intervals against their level: on the diagonal, error bars are honest."""
    level = np.linspace(0.0, 1.0, 101)
    central = np.abs(2.0 * prediction.cdf(y) - 1.0)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(level, [np.mean(central <= p) for p in level], color=BLUE, linewidth=2)
    axes.set_xlabel("level of the interval")
    axes.set_ylabel("share of observations inside")


def curve(axes: Any, x: np.ndarray, prediction: Mixture, draws: int = 0) -> None:
    """Mean, 50 % and 95 % bands along one input, and some draws of the noise-free function if asked."""
    for level, alpha in ((0.95, 0.15), (0.5, 0.3)):
        lower, upper = prediction.interval(level)
        axes.fill_between(x, lower, upper, color=BLUE, alpha=alpha, linewidth=0, label=f"{level:.0%} of y")
    functions = prediction.scaling.restore(prediction.means)[..., 0]
    for row in functions[np.linspace(0, len(functions) - 1, draws).astype(int)]:
        axes.plot(x, row, color=GREY, linewidth=0.5, alpha=0.6)
    axes.plot(x, prediction.mean, color=BLUE, linewidth=2, label="mean")
