"""``mnist`` and ``cep``: pictures and molecules, the large tables of the paper."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.splits import split_rows
from deepwell.fits.fit import fit
from deepwell.predict.scores import scores
from deepwell.studies.comparison import beside_the_paper
from deepwell.studies.figures import bars
from deepwell.studies.options import HOW, Options, chosen
from deepwell.studies.page import Page
from deepwell.studies.provenance import data_hash
from deepwell.studies.rows import Row, Store
from deepwell.studies.sweep import Job, Writer, sweep_and_publish

KEY = ("dataset", "method", "split", "seed", *HOW)
SAMPLED = {"burn_in": 15_000, "num_samples": 100, "spacing": 50}
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "mnist": {
        "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
        "Dec SGP": {"depth": 1, "inference": "dsvi-decoupled", "burn_in": 20_000},
        "DGP 3": {"depth": 3, "inference": "dsvi", "burn_in": 20_000},
        "SGHMC DGP 3": {"depth": 3, "dsvi_start": 4_000, "objective": "predictive", **SAMPLED},
        "Dec DGP 3": {"depth": 3, "inference": "dsvi-decoupled", "burn_in": 20_000},
    },
    "cep": {
        "SGP": {"depth": 1, "inference": "dsvi", "burn_in": 20_000},
        "SGHMC SGP": {"depth": 1, **SAMPLED},
        "DGP 2": {"depth": 2, "inference": "dsvi", "burn_in": 20_000},
        "DGP 5": {"depth": 5, "inference": "dsvi", "burn_in": 10_000},
        "BNN": {"inference": "bnn", **SAMPLED},
        "SGHMC DGP 2": {"depth": 2, **SAMPLED},
        "SGHMC DGP 5": {"depth": 5, **SAMPLED},
    },
}
BATCH = 1_000
SHOWN: dict[str, dict[str, Callable[[float], str]]] = {
    "mnist": {
        "accuracy": "{:.2%}".format,
        "test_log_likelihood": "{:.3f}".format,
        "calibration_error": "{:.1%}".format,
    },
    "cep": {"test_log_likelihood": "{:.3f}".format, "rmse": "{:.4g}".format, "coverage_95": "{:.1%}".format},
}


def run_table(name: str, options: Options) -> None:
    """Rows, table, figure."""
    options = options.of_study("default", ("depth", "inference", "likelihood"))
    store = Store(options.folder, name, KEY)
    methods = chosen("method", options.methods, tuple(TABLES[name]), ("SGP",) if options.smoke else None)
    jobs = [_job(options, name, method, split) for method in methods for split in options.splits or (0,)]
    sweep_and_publish(store, options, jobs, _in_words, partial(page, name))


def _job(options: Options, name: str, method: str, split: int) -> Job:
    options.settings_of(TABLES[name][method])
    member = {"dataset": name, "method": method, "split": split, "seed": options.seed, **options.how()}
    kind = f"{name}, {method}"
    title = f"{kind}, split {split}, {options.in_words()}"
    return Job(title, [member], partial(work, options), TABLES[name][method].get("depth", 1), kind=kind)


def work(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """One fit: the usual training rows, or a random split."""
    for member in members:
        data = options.table(member["dataset"])
        X, y = data.X.to_numpy(float), data.y.to_numpy()
        if data.num_train is None:
            train, test = split_rows(len(X), member["split"], member["seed"])
        else:
            train, test = np.split(np.arange(len(X)), [data.num_train])
        settings = {"batch_size": BATCH, **TABLES[member["dataset"]][member["method"]], **member["settings"]}
        likelihood = {"likelihood": "robust-max"} if data.is_class else {}
        model = fit(
            X[train], y[train], preset=member["preset"], seed=member["seed"] + member["split"], checkpoint=folder,
            every=options.every, verbose=options.verbose, **{**settings, **likelihood},
        )  # fmt: skip
        started = time.perf_counter()
        found = scores(model.predict_dist(X[test]), y[test])
        seconds = model.seconds + time.perf_counter() - started
        write(member, {**found, "seconds": round(seconds, 2), "rows": len(train), "data": data_hash(X, y)})


def page(name: str, rows: Sequence[Row]) -> Page:
    """Table and figure of what there is."""
    known, score = list(TABLES[name]), next(iter(SHOWN[name]))
    remark = {
        "mnist": "60,000 training and 10,000 test pictures, robust-max.",
        "cep": "29,978 molecules, 512 Morgan bits; the paper had 60,000 others, so its figures are not comparable.",
    }[name]
    published_table = "accuracy" if name == "mnist" else "test_log_likelihood"
    shown = beside_the_paper(rows, SHOWN[name], published_table, lambda key: known.index(key[1]))
    return Page([f"# {name}\n", f"{remark}\n", shown], bars(rows, known, score, published_table))


def _in_words(row: Row) -> str:
    name = f"{row['dataset']}, {row['method']}, split {row['split']}"
    return f"{name}: {row['test_log_likelihood']:.3f} ({row['seconds']:.0f} s)"
