"""``fit_group``: tables of one shape fitted as one program, such as the splits of one table."""

import signal
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.response import shared_classes
from deepwell.fits.events import event_reporter
from deepwell.fits.fit import WORTH_A_WARNING, fit
from deepwell.fits.fitted import FittedModel
from deepwell.fits.interrupt import Interrupted, signal_watch
from deepwell.fits.memory import memory_advice
from deepwell.fits.prepare import Prepared, checked_seed, fitted_model, identity_of, prepare, with_local_part
from deepwell.fits.presets import make_settings
from deepwell.fits.progress import progress_bars
from deepwell.inference.driver import Stopped, run_group
from deepwell.model.likelihoods.registry import response_kind
from deepwell.store.checkpoint import checkpointing


def fit_group(
    tables: Sequence[tuple[Any, Any]],
    seeds: Sequence[int],
    *,
    preset: str = "default",
    classes: Sequence[Any] | np.ndarray | None = None,
    verbose: bool = False,
    checkpoint: str | Path | None = None,
    every: float | None = None,
    **settings: Any,
) -> list[FittedModel]:
    """Fit tables of one shape, such as splits of one table, as one program; one by one if their shapes differ.

    If y is a class, all models know all classes. The seconds of each model are those of the group, shared out evenly.
    ``checkpoint`` is a folder for the state of the group, from which the same call goes on, as in ``fit``; Ctrl-C and
    SIGTERM end the group with ``deepwell.Interrupted``, which carries no model.
    """
    chosen = make_settings(preset, **settings)
    started = time.perf_counter()
    if classes is None:
        classes = shared_classes([y for _, y in tables], response_kind(chosen.likelihood))
    pairs = list(zip(tables, seeds, strict=True))
    several = pairs if len(pairs) > 1 else []  # one alone is made ready by ``fit``
    members = [prepare(*table, chosen, checked_seed(seed), None, classes) for table, seed in several]
    shapes = {(str(jax.tree.map(jnp.shape, (m.problem, m.rows))), m.run.config) for m in members}
    if len(shapes) != 1:
        options = {"preset": preset, "classes": classes, "verbose": verbose, "every": every, **settings}
        folders = [None if checkpoint is None else Path(checkpoint) / str(i) for i in range(len(pairs))]
        return [
            fit(*table, seed=seed, checkpoint=f, **options) for (table, seed), f in zip(pairs, folders, strict=True)
        ]
    key, problem, rows = jax.tree.map(lambda *x: jnp.stack(x), *[(m.key, m.problem, m.rows) for m in members])
    together = members[0].run._replace(key=key, problem=problem, rows=rows)
    log_unit = float(np.mean([m.log_unit for m in members]))
    with signal_watch() as watch:
        try:
            with (
                checkpointing(checkpoint, partial(_group_identity, tables, members), every, watch.stop) as hooks,
                progress_bars(verbose) as bars,
                memory_advice(chosen, members[0].known["num_rows"], len(members)),
            ):
                results = run_group(together, event_reporter(bars, log_unit), hooks)
        except Stopped:
            raise Interrupted(None, watch.caught or signal.SIGINT) from None
    if watch.caught is not None:
        raise Interrupted(None, watch.caught)
    seconds = time.perf_counter() - started
    models = [
        with_local_part(fitted_model(m, result, preset, seconds, len(members)), m)
        for m, result in zip(members, results, strict=True)
    ]
    for i, model in enumerate(models):
        if model.numerical_issues(WORTH_A_WARNING):
            warnings.warn(f"table {i}: {model.numerical_issues(WORTH_A_WARNING)}", stacklevel=2)
    return models


def _group_identity(tables: Sequence[tuple[Any, Any]], members: Sequence[Prepared]) -> dict[str, Any]:
    return {f"table {i}": identity_of(X, m) for i, ((X, _), m) in enumerate(zip(tables, members, strict=True))}
