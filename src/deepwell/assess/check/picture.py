"""The picture of ``deepwell check``: each function draws on the ``Axes`` it is given, in colour-blind safe colours."""

from pathlib import Path
from typing import Any

import numpy as np

from deepwell.assess.check import agreement, simulation
from deepwell.assess.check.agreement import Agreement
from deepwell.assess.check.exact_law import Law
from deepwell.assess.check.simulation import RankHistogram
from deepwell.doors.plots import BLUE, GREY, ORANGE

BAND = 0.99


def draw_check(
    path: Path, laws: dict[str, Law], histograms: dict[str, RankHistogram], agreements: list[Agreement]
) -> None:
    """Above: the chain's law and NUTS; below: ranks at depth 1, where Z_1 = X, and where the bound is loose."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.5), layout="constrained")
    panels = figure.subplots(2, 3)
    whitened_states(panels[0, 0], laws["predictive"])
    whitened_variances(panels[0, 1], laws)
    function_bands(panels[0, 2], agreements)
    one, tight, *loose = histograms.items()
    ranks(panels[1, 0], dict([one]), simulation.STATISTICS)
    ranks(panels[1, 1], dict([tight]), simulation.STATISTICS)
    ranks(panels[1, 2], dict(loose), simulation.STATISTICS[simulation.FUNCTION][-1:])
    figure.savefig(path, dpi=130)


def whitened_states(axes: Any, law: Law) -> None:
    """All whitened coordinates of all chains: the standard normal density if the law is exact."""
    from scipy import stats

    place = np.linspace(-4, 4, 200)
    axes.hist(law.whitened.ravel(), 80, range=(-4, 4), density=True, color=BLUE, alpha=0.4, label="chains")
    axes.plot(place, stats.norm.pdf(place), color=GREY, linewidth=2, label="exact law")
    axes.set_xlabel("position and momentum, whitened")
    axes.set_title(f"law of the chain, depth 1 (p = {law.p:.2g})")
    axes.legend(frameon=False, fontsize="small")


def whitened_variances(axes: Any, laws: dict[str, Law]) -> None:
    """Variance of every whitened coordinate: about 1 within the band, for either objective; the twin's is not."""
    from scipy import stats

    count, size = laws["predictive"].whitened.shape
    lower, upper = (float(stats.chi2(count).ppf(q)) / count for q in ((1 - BAND) / 2, (1 + BAND) / 2))
    axes.axhspan(lower, upper, color=GREY, alpha=0.25, linewidth=0, label="99 % if exact")
    for (objective, law), marker, large in zip(laws.items(), "os", (4, 8), strict=True):
        style = {"marker": marker, "markersize": large, "fillstyle": "none", "linestyle": "none", "label": objective}
        axes.plot(np.arange(size), np.mean(law.whitened**2, 0), color=BLUE, **style)
    axes.plot(np.arange(size), np.mean(laws["predictive"].twin ** 2, 0), "x", color=ORANGE, label="twin: 10 % off")
    axes.set_ylim(bottom=2 * lower - 1)
    axes.set_xlabel("whitened coordinate")
    axes.set_ylabel("mean square")
    axes.set_title("variance of every coordinate")
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="lower left")


def function_bands(axes: Any, agreements: list[Agreement]) -> None:
    """Mean, 5 % and 95 % quantiles of the function by both samplers."""
    axes.set_title("NUTS: skipped, blackjax is not installed")
    for result in agreements:
        x = agreement.GRID[:, 0]
        axes.fill_between(x, *np.quantile(result.nuts, (0.05, 0.95), 0), color=GREY, alpha=0.25, linewidth=0)
        axes.plot(x, np.mean(result.nuts, 0), color=GREY, linewidth=2, label="NUTS, mean and 90 %")
        for i, values in enumerate((np.mean(result.sghmc, 0), *np.quantile(result.sghmc, (0.05, 0.95), 0))):
            axes.plot(x, values, "o", color=BLUE, markersize=4, label="SGHMC" if i == 0 else None)
        axes.set_title(f"depth 2, Z_1 = X: at most {result.gap:.2f} std apart")
        axes.set_xlabel("x")
        axes.set_ylabel("f(x)")
        axes.legend(frameon=False, fontsize="small", loc="lower center")


def ranks(axes: Any, histograms: dict[str, RankHistogram], statistics: tuple[str, ...]) -> None:
    """Share of replications by the truth's rank: flat if calibrated, most points inside the band of their number."""
    from scipy import stats

    fewest = min(len(histogram.ranks) for histogram in histograms.values())
    expected = 1 / simulation.BINS
    lower, upper = (
        float(stats.binom(fewest, expected).ppf(q)) / fewest / expected for q in ((1 - BAND) / 2, (1 + BAND) / 2)
    )
    axes.axhspan(lower, upper, color=GREY, alpha=0.25, linewidth=0, label="99 % if calibrated")
    lines = [(name, histogram, s) for name, histogram in histograms.items() for s in statistics]
    place = (np.arange(simulation.BINS) + 0.5) / simulation.BINS
    for i, (name, histogram, statistic) in enumerate(lines):
        counts = histogram.counts[simulation.STATISTICS.index(statistic)]
        label = statistic if len(histograms) == 1 else name.removeprefix("depth 2, loose, ")
        style = {"color": (ORANGE, BLUE)[i % 2], "marker": "osv^D"[i], "linestyle": ("-", "--", ":")[i // 2]}
        axes.plot(place, counts / len(histogram.ranks) / expected, markersize=4, linewidth=1.2, label=label, **style)
    axes.set_ylim(bottom=max(0.0, 1 - 2 * (upper - lower)))
    axes.set_xlabel("rank of the truth among the draws")
    axes.set_ylabel("share of replications, times bins")
    axes.set_title(_ranks_title(histograms))
    axes.legend(frameon=False, fontsize="small", ncols=2)


def _ranks_title(histograms: dict[str, RankHistogram]) -> str:
    if len(histograms) > 1:
        return f"loose bound, reported: ranks of {simulation.STATISTICS[simulation.FUNCTION][-1]}"
    ((name, histogram),) = histograms.items()
    return f"calibration, {name} (p = {histogram.p:.2g})"
