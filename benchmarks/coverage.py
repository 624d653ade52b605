"""Do intervals hold what they say? Coverage of 90 % and 95 % intervals on UCI sets, raw and after conformal adjustment.

    DEEPWELL_DATA=folder python benchmarks/coverage.py
    DEEPWELL_DATA=folder python benchmarks/coverage.py --summary

Of each split's training rows a fifth is kept out of the fit for the adjustment; both kinds of intervals are those of
the same model, on the same test rows. One JSON line a set and split; run again, it goes on where it stopped.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from deepwell.studies.rows import Store

from deepwell import __version__, fit
from deepwell.data import load, split_rows
from deepwell.predict.scores import scores

SETS = ("energy", "concrete", "kin8nm", "power")
LEVELS = (0.9, 0.95)
CALIBRATION = 0.2


def measured(name: str, split: int, preset: str) -> dict[str, Any]:
    """Coverage and mean width of both kinds of intervals at both levels."""
    data = load(name)
    X, y = data.X.to_numpy(float), data.y.to_numpy(float)
    train, test = split_rows(len(X), split)
    model = fit(X[train], y[train], preset=preset, seed=split, calibration=CALIBRATION, verbose=True)
    row: dict[str, Any] = scores(model.predict_dist(X[test]), y[test]) | {"test_rows": len(test)}
    row |= {"calibration_rows": round(CALIBRATION * len(train)), "seconds": model.seconds, "deepwell": __version__}
    for kind in ("raw", "conformal"):
        for level in LEVELS:
            lower, upper = model.predict_interval(X[test], level, conformal=kind == "conformal")
            row[f"{kind}_{level}"] = float(np.mean((lower <= y[test]) & (y[test] <= upper)))
            row[f"{kind}_width_{level}"] = float(np.mean(upper - lower))
    return row


def summary(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: coverage in percent over the splits, its standard error, and how the widths change."""
    head = [f"{kind}, {level:.0%}" for level in LEVELS for kind in ("raw", "adjusted")]
    lines = [f"| | splits | {' | '.join(head)} | width, 90 % |", "|---|---|" + "---|" * (len(head) + 1)]
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        cells = [_share([row[f"{kind}_{level}"] for row in own]) for level in LEVELS for kind in ("raw", "conformal")]
        wider = np.mean([row["conformal_width_0.9"] / row["raw_width_0.9"] for row in own])
        lines.append(f"| {name} | {len(own)} | {' | '.join(cells)} | times {wider:.2f} |")
    return "\n".join(lines)


def _share(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{100 * np.mean(values):.1f} ± {100 * error:.1f}"


def main() -> None:
    """Measure what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--splits", nargs="+", type=int, default=range(5))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--summary", action="store_true")
    chosen = parser.parse_args()
    store = Store(chosen.out, "coverage", ("set", "split", "preset"))
    if not chosen.summary:
        wanted = [{"set": s, "split": i, "preset": chosen.preset} for s in chosen.sets for i in chosen.splits]
        for key in wanted:
            if store.key(key) not in store.finished():
                store.append(key | measured(key["set"], key["split"], key["preset"]))
    print(summary([row for row in store.rows() if row["preset"] == chosen.preset]))


if __name__ == "__main__":
    main()
