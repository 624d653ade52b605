"""Do four chains agree? R-hat of function values at held-out rows, for preset ``default`` and for what may help.

    DEEPWELL_DATA=folder python benchmarks/mixing.py --splits 100 101            # to choose
    DEEPWELL_DATA=folder python benchmarks/mixing.py --splits 0 1 2 --only default "spacing 200"

One JSON line a variant and split; run again, it goes on where it stopped. Ends with a Markdown table of medians.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from deepwell.studies.rows import Store

from deepwell import __version__, fit
from deepwell.data import load, split_rows
from deepwell.predict.scores import scores

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


def measured(name: str, split: int, variant: str, preset: str, chains: int) -> dict[str, Any]:
    """How well the chains agree, and what the prediction is worth."""
    data = load(name)
    X, y = data.X.to_numpy(float), data.y.to_numpy(float)
    train, test = split_rows(len(X), split)
    options = {"preset": preset, "seed": split, "num_chains": chains, "verbose": True}
    model = fit(X[train], y[train], **options, **VARIANTS[variant])
    found = model.diagnose(X[test])
    effective = float("nan") if found.effective is None else float(np.median(found.effective.bulk))
    return {
        "below_1.05": float(np.mean(found.r_hat <= 1.05)),
        "r_hat_median": float(np.median(found.r_hat)),
        "r_hat_95": float(np.quantile(found.r_hat, 0.95)),
        "r_hat_worst": float(np.max(found.r_hat)),
        "effective": effective,
        "modes": len(found.modes),
        "verdict": str(found),
        "seconds": model.seconds,
        "deepwell": __version__,
        **scores(model.predict_dist(X[test]), y[test]),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """A Markdown table of medians over the splits."""
    lines = [
        f"| | splits | {' | '.join(name.replace('_', ' ') for name in SHOWN)} |",
        "|---|---|" + "---|" * len(SHOWN),
    ]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == variant]
        cells = [f"{np.median([row[name] for row in own]):.4g}" for name in SHOWN]
        lines.append(f"| {variant} | {', '.join(str(row['split']) for row in own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--set", default="concrete")
    parser.add_argument("--splits", nargs="+", type=int, required=True)
    parser.add_argument("--only", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--chains", type=int, default=4)
    chosen = parser.parse_args()
    same = {"set": chosen.set, "preset": chosen.preset, "chains": chosen.chains}
    wanted = [{**same, "variant": variant, "split": split} for variant in chosen.only for split in chosen.splits]
    store = Store(chosen.out, "mixing", ("set", "preset", "chains", "variant", "split"))
    for key in wanted:
        if store.key(key) not in store.finished():
            row = measured(key["set"], key["split"], key["variant"], key["preset"], key["chains"])
            store.append(key | row)
    print(summary([row for row in store.rows() if row["split"] in chosen.splits and same.items() <= row.items()]))


if __name__ == "__main__":
    main()
