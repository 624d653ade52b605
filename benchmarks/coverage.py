"""Do intervals cover as often as they claim? 90 % and 95 % intervals on UCI sets, raw and after conformal adjustment.

    DEEPWELL_DATA=folder python benchmarks/coverage.py
    DEEPWELL_DATA=folder python benchmarks/coverage.py --summary

A fifth of each split's training rows is kept out of the fit for the adjustment. Both kinds of intervals come from the
same model and are tested on the same rows. There is one JSON line for each set and split; a second run measures only
what is missing.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from uci_rows import measure_missing, split_of

from deepwell import __version__, fit
from deepwell.studies.comparison import markdown_table
from deepwell.studies.row_store import RowStore

SETS = ("energy", "concrete", "kin8nm", "power")
LEVELS = (0.9, 0.95)
CALIBRATION = 0.2


def measure(dataset: str, split: int, preset: str) -> dict[str, Any]:
    """Coverage and mean width of both kinds of intervals at both levels."""
    X, y, X_test, y_test = split_of(dataset, split)
    model = fit(X, y, preset=preset, seed=split, calibration=CALIBRATION, verbose=True)
    row: dict[str, Any] = model.predict_dist(X_test).scores(y_test) | {"test_rows": len(y_test)}
    row |= {"calibration_rows": round(CALIBRATION * len(y)), "seconds": model.seconds, "deepwell": __version__}
    for kind in ("raw", "conformal"):
        for level in LEVELS:
            lower, upper = model.predict_interval(X_test, level, conformal=kind == "conformal")
            row[f"{kind}_{level}"] = float(np.mean((lower <= y_test) & (y_test <= upper)))
            row[f"{kind}_width_{level}"] = float(np.mean(upper - lower))
    return row


def summary(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: coverage in per cent over the splits, its standard error, and the ratio of widths."""
    columns = [f"{kind}, {level:.0%}" for level in LEVELS for kind in ("raw", "adjusted")]
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        cells = [_percent([row[f"{kind}_{level}"] for row in own]) for level in LEVELS for kind in ("raw", "conformal")]
        wider = np.mean([row["conformal_width_0.9"] / row["raw_width_0.9"] for row in own])
        lines.append([name, len(own), *cells, f"times {wider:.2f}"])
    return markdown_table(["", "splits", *columns, "width, 90 %"], lines)


def _percent(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{100 * np.mean(values):.1f} ± {100 * error:.1f}"


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--splits", nargs="+", type=int, default=range(5))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--summary", action="store_true", help="print the table only")
    arguments = parser.parse_args()
    store = RowStore(arguments.out, "coverage", ("set", "split", "preset"))
    if not arguments.summary:
        preset = arguments.preset
        wanted = [{"set": s, "split": i, "preset": preset} for s in arguments.sets for i in arguments.splits]
        measure_missing(store, wanted, lambda member: measure(member["set"], member["split"], member["preset"]))
    print(summary([row for row in store.rows() if row["preset"] == arguments.preset]))


if __name__ == "__main__":
    main()
