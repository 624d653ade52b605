"""Do four chains agree? R-hat of function values at held-out rows, for preset ``default`` and for possible remedies.

    DEEPWELL_DATA=folder python benchmarks/mixing.py --splits 100 101            # to choose
    DEEPWELL_DATA=folder python benchmarks/mixing.py --splits 0 1 2 --only default "spacing 200"

There is one JSON line for each variant and split; a second run measures only what is missing. It ends with a Markdown
table of medians.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from uci_rows import measure_missing, split_of

from deepwell import __version__, fit
from deepwell.studies.comparison import markdown_table
from deepwell.studies.row_store import RowStore

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "sampling friction 0.05, spacing 50": {"sampling_friction": 0.05, "spacing": 50},
    "sampling friction 0.05": {"sampling_friction": 0.05},
    "spacing 50": {"spacing": 50},
    "spacing 200": {"spacing": 200},
    "step 0.04": {"step_size": 0.04},
    "friction 0.01": {"friction": 0.01},
    "sghmc-bayes": {"inference": "sghmc-bayes"},
}
SHOWN = ("below_1.05", "r_hat_median", "r_hat_95", "r_hat_worst", "effective", "test_log_likelihood", "rmse", "seconds")


def measure(dataset: str, split: int, variant: str, preset: str, chains: int) -> dict[str, Any]:
    """How well the chains agree, and the scores of their predictions."""
    X, y, X_test, y_test = split_of(dataset, split)
    options = {"preset": preset, "seed": split, "num_chains": chains, "verbose": True}
    model = fit(X, y, **options, **VARIANTS[variant])
    diagnosis = model.diagnose(X_test)
    effective = float("nan") if diagnosis.effective is None else float(np.median(diagnosis.effective.bulk))
    return {
        "below_1.05": float(np.mean(diagnosis.r_hat <= 1.05)),
        "r_hat_median": float(np.median(diagnosis.r_hat)),
        "r_hat_95": float(np.quantile(diagnosis.r_hat, 0.95)),
        "r_hat_worst": float(np.max(diagnosis.r_hat)),
        "effective": effective,
        "modes": len(diagnosis.modes),
        "verdict": str(diagnosis),
        "seconds": model.seconds,
        "deepwell": __version__,
        **model.predict_dist(X_test).scores(y_test),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """A Markdown table of medians over the splits."""
    lines = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == variant]
        medians = [f"{np.median([row[name] for row in own]):.4g}" for name in SHOWN]
        lines.append([variant, ", ".join(str(row["split"]) for row in own), *medians])
    return markdown_table(["", "splits", *(name.replace("_", " ") for name in SHOWN)], lines)


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--set", default="concrete")
    parser.add_argument("--splits", nargs="+", type=int, required=True)
    parser.add_argument("--only", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--chains", type=int, default=4)
    arguments = parser.parse_args()
    common = {"set": arguments.set, "preset": arguments.preset, "chains": arguments.chains}
    wanted = [{**common, "variant": variant, "split": i} for variant in arguments.only for i in arguments.splits]
    store = RowStore(arguments.out, "mixing", ("set", "preset", "chains", "variant", "split"))
    measure_missing(
        store,
        wanted,
        lambda member: measure(member["set"], member["split"], member["variant"], member["preset"], member["chains"]),
    )
    shown = [row for row in store.rows() if row["split"] in arguments.splits and common.items() <= row.items()]
    print(summary(shown))


if __name__ == "__main__":
    main()
