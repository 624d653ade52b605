"""How the cost of an iteration grows with rows, inducing points, depth, width, chains and simultaneous fits.

    taskset -c 0 python benchmarks/scaling.py --out docs/img/scaling.png --json scaling.json

One thing varies at a time around the shape of the protein set: 36,584 rows, 9 columns, width 9, 100 inducing points,
minibatches of 1,000. The median of three rounds is reported. The exponent b of cost = a x^b is fitted to the upper half
of the points by least squares on logarithms. ``deepwell reproduce`` and ``evaluate`` run the splits of one table as
simultaneous fits ("members"); on a GPU run ``--vary members --batch 10000``.
"""

import argparse
import json
import statistics
from pathlib import Path

import jax
import numpy as np
from steps import programs
from timing import seconds_per_iteration

STANDARD = {"rows": 36_584, "num_inducing": 100, "depth": 2, "width": 9, "num_chains": 1, "members": 1}
VARIED = {
    "rows": (10_000, 100_000, 1_000_000),
    "num_inducing": (50, 100, 200, 400, 800),
    "depth": (1, 2, 3, 4, 6, 8),
    "width": (1, 2, 4, 9, 18, 36),
    "num_chains": (1, 2, 4, 8, 16, 32),
    "members": (1, 2, 5, 10),
}
NAMES = {
    "rows": "rows", "num_inducing": "inducing points", "depth": "layers", "width": "width", "num_chains": "chains",
    "members": "fits at once",
}  # fmt: skip
ROUND_SECONDS = 0.5
ROUNDS = 3


def cost(batch: int, **shape: int) -> dict[str, float]:
    """Median seconds of an iteration of burn-in and of sampling."""
    rows, settings = shape["rows"], {k: v for k, v in shape.items() if k != "rows"}
    medians = {}
    for phase, run in programs("sghmc", rows, 9, batch_size=batch, **settings):
        run(1)
        count = max(2, int(ROUND_SECONDS / seconds_per_iteration(run, 2)))
        medians[phase] = statistics.median(seconds_per_iteration(run, count) for _ in range(ROUNDS))
    return medians


def exponent(x: list[int], y: list[float]) -> float:
    """b of y = a x^b over the upper half of the points."""
    upper = slice(len(x) // 2 - (len(x) == 3), None)
    return float(np.polyfit(np.log(x[upper]), np.log(y[upper]), 1)[0])


def draw(measured: dict, path: Path) -> None:
    """A panel for each thing that varies."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(measured), figsize=(3.0 * len(measured), 2.8), layout="constrained", sharey=True
    )
    for axes, (name, values) in zip(panels, measured.items(), strict=True):
        for phase, colour in (("burn-in", "#0072B2"), ("sampling", "#D55E00")):
            y = [1e3 * row[phase] for row in values["cost"]]
            label = f"{phase}, exponent {values['exponent'][phase]:.2f}"
            axes.loglog(values["x"], y, "o-", color=colour, label=label)
        axes.set_xticks(values["x"], [f"{x:,}" for x in values["x"]])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(NAMES[name])
        axes.legend(frameon=False, fontsize="small", loc="upper left")
    panels[0].set_ylim(top=1_000.0)
    panels[0].set_ylabel("milliseconds an iteration")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--vary", nargs="+", default=list(VARIED), choices=list(VARIED))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, minibatches of {arguments.batch}")
    measured: dict = {}
    for name in arguments.vary:
        costs = []
        for value in VARIED[name]:
            costs.append(cost(arguments.batch, **{**STANDARD, name: value}))
            print(name, value, {phase: f"{1e3 * s:.3f} ms" for phase, s in costs[-1].items()}, flush=True)
        exponents = {p: exponent(list(VARIED[name]), [c[p] for c in costs]) for p in costs[0]}
        measured[name] = {"x": list(VARIED[name]), "cost": costs, "exponent": exponents}
        print(name, "exponents", {phase: round(b, 2) for phase, b in exponents.items()}, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(measured, indent=1))
    if arguments.out:
        draw(measured, arguments.out)


if __name__ == "__main__":
    main()
