"""MNIST and the molecules of the Clean Energy Project: the paper's rows, one JSON line a fit.

    DEEPWELL_DATA=folder python benchmarks/large_tables.py mnist --out mnist.jsonl
    DEEPWELL_DATA=folder python benchmarks/large_tables.py cep --out cep.jsonl --only "SGHMC DGP 5"

``--iterations`` shortens every fit (all phases in proportion), for a try.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deepwell import __version__, fit
from deepwell.data import load, split_rows
from deepwell.predict.metrics import scores

SAMPLED = {"burn_in": 15_000, "num_samples": 100, "spacing": 50}
MNIST: dict[str, dict[str, Any]] = {
    "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
    "Dec SGP": {"depth": 1, "inference": "dsvi-decoupled", "burn_in": 20_000},
    "DGP 3": {"depth": 3, "inference": "dsvi", "burn_in": 20_000},
    "SGHMC DGP 3": {"depth": 3, "dsvi_start": 4_000, "objective": "predictive", **SAMPLED},
    "Dec DGP 3": {"depth": 3, "inference": "dsvi-decoupled", "burn_in": 20_000},
}
CEP: dict[str, dict[str, Any]] = {
    "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
    "SGHMC SGP": {"depth": 1, **SAMPLED},
    "DGP 2": {"depth": 2, "inference": "dsvi", "burn_in": 20_000},
    "DGP 5": {"depth": 5, "inference": "dsvi", "burn_in": 10_000},
    "BNN": {"inference": "bnn", **SAMPLED},
    "SGHMC DGP 2": {"depth": 2, **SAMPLED},
    "SGHMC DGP 5": {"depth": 5, **SAMPLED},
}
TABLES = {"mnist": MNIST, "cep": CEP}


def shortened(settings: dict[str, Any], iterations: int | None) -> dict[str, Any]:
    """The same phases, so many burn-in iterations at most."""
    if iterations is None:
        return settings
    factor = min(1.0, iterations / settings["burn_in"])
    return settings | {
        name: max(1, int(factor * settings[name])) for name in ("burn_in", "dsvi_start", "spacing") if name in settings
    }


def main() -> None:
    """Fit, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", help="one row of the table; repeat for several")
    parser.add_argument("--iterations", type=int)
    chosen = parser.parse_args()
    data = load(chosen.table)
    X, y = data.X.to_numpy(), data.y.to_numpy()
    if data.num_train is None:
        train, test = split_rows(len(X), split=0)
    else:
        train, test = np.arange(data.num_train), np.arange(data.num_train, len(X))
    for name, settings in TABLES[chosen.table].items():
        if chosen.only and name not in chosen.only:
            continue
        likelihood = {"likelihood": "robust-max"} if data.is_class else {}
        started = time.perf_counter()
        model = fit(X[train], y[train], batch_size=1_000, verbose=True, **likelihood,
                    **shortened(settings, chosen.iterations))  # fmt: skip
        row = {"table": chosen.table, "method": name, **scores(model.predict_dist(X[test]), y[test])}
        row |= {"seconds": time.perf_counter() - started, "device": jax.devices()[0].device_kind}
        row |= {"settings": settings, "deepwell": __version__, "jax": jax.__version__}
        print(json.dumps(row))
        with chosen.out.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
