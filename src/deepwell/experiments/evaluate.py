"""Scores over repeated train-test splits: the protocol behind ``deepwell evaluate``."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from deepwell.data.errors import InputError
from deepwell.data.splits import split_rows
from deepwell.data.tables import to_matrices
from deepwell.interfaces.fitting import checked_seed, fit
from deepwell.predict.metrics import SCORES, scores


def evaluate(
    X: Any,
    y: Any,
    splits: Sequence[int],
    *,
    seed: int = 0,
    test_size: float = 0.2,
    **settings: Any,
) -> dict[str, Any]:
    """Fit on each split's training rows and score its test rows, in the units of y.

    Returns ``{"splits": [row, ...], "mean": {...}}``; rows and mean hold the scores and the seconds of
    the fit and the prediction. The model's seed is ``seed`` + split.
    """
    if not 0.0 < test_size < 1.0:
        raise InputError(f"test_size={test_size!r} must lie strictly between 0 and 1")
    if not splits:
        raise InputError("there must be at least one split")
    seed = checked_seed(seed)
    inputs, _, targets, _ = to_matrices(X, y)
    targets = targets[:, 0] if targets.shape[1] == 1 else targets
    rows = []
    for split in splits:
        train, test = split_rows(len(inputs), split, seed, test_size)
        if len(train) == 0 or len(test) == 0:
            raise InputError(f"{len(inputs)} rows are too few for test_size={test_size}")
        started = time.perf_counter()
        model = fit(inputs[train], targets[train], seed=seed + split, **settings)
        prediction = model.predict_dist(inputs[test])
        seconds = time.perf_counter() - started
        rows.append({"split": split, **scores(prediction, targets[test]), "seconds": seconds})
    mean = {name: float(np.mean([row[name] for row in rows])) for name in (*SCORES, "seconds")}
    return {"splits": rows, "mean": mean}
