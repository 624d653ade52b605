"""Scores over repeated train-test splits: the protocol behind ``deepwell evaluate``."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from deepwell.data.response import read_response
from deepwell.data.splits import split_rows
from deepwell.data.tables import require_same_rows, to_matrix
from deepwell.errors import InputError
from deepwell.fits.group import fit_group
from deepwell.fits.prepare import checked_seed
from deepwell.fits.presets import make_settings
from deepwell.model.likelihoods.registry import response_kind


def evaluate(
    X: Any,
    y: Any,
    splits: Sequence[int],
    *,
    seed: int = 0,
    test_size: float = 0.2,
    preset: str = "default",
    verbose: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Fit on each split's training rows and score its test rows, in the units of y.

    All splits have one shape, so they are fitted as one program: on a GPU ten take three to four times as long as one.
    Returns ``{"splits": [row, ...], "mean": {...}}``. Rows and mean hold the scores and the seconds of fit (an equal
    share of the group's) and prediction. The seed of a model is ``seed`` plus the number of its split.
    """
    if not 0.0 < test_size < 1.0:
        raise InputError(f"test_size={test_size!r} must lie strictly between 0 and 1")
    if not splits:
        raise InputError("there must be at least one split")
    seed = checked_seed(seed)
    inputs = to_matrix(X, "X").values
    response = read_response(y, response_kind(make_settings(preset, **settings).likelihood))
    targets = response.original
    require_same_rows(inputs, targets)
    parts = [split_rows(len(inputs), split, seed, test_size) for split in splits]
    if min(len(parts[0][0]), len(parts[0][1])) == 0:
        raise InputError(f"{len(inputs)} rows are too few for test_size={test_size}")
    training = [(inputs[train], targets[train]) for train, _ in parts]
    seeds = [seed + split for split in splits]
    models = fit_group(training, seeds, preset=preset, classes=response.classes, verbose=verbose, **settings)
    rows = []
    for split, (_, test), model in zip(splits, parts, models, strict=True):
        started = time.perf_counter()
        result = model.predict_dist(inputs[test]).scores(targets[test])
        seconds = model.seconds + time.perf_counter() - started
        rows.append({"split": split, **result, "seconds": seconds})
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name != "split"}
    return {"splits": rows, "mean": mean}
