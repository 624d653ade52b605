"""``deepwell.fit``: a table in, a fitted model out."""

import signal
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.response import read_response
from deepwell.data.tables import take_rows
from deepwell.errors import InputError
from deepwell.fits.events import Callback, checked_callbacks, event_reporter
from deepwell.fits.fitted import FittedModel
from deepwell.fits.interrupt import Interrupted, signal_watch
from deepwell.fits.memory import memory_advice
from deepwell.fits.prepare import STREAM, checked_seed, fitted_model, identity_of, prepare, with_local_part
from deepwell.fits.presets import make_settings
from deepwell.fits.progress import progress_bars
from deepwell.fits.settings import Settings
from deepwell.fits.start import OwnModel, fitted_start, refuse_shape_beside_model, with_shape_of
from deepwell.inference.driver import Hooks, Position, Result, Stopped, has_snapshots, run_one, snapshot
from deepwell.model.likelihoods.registry import response_kind
from deepwell.store.checkpoint import checkpointing

WORTH_A_WARNING = 0.01
"""Share of the iterations in which the jitter may grow without a word."""

Monitor = Callable[[int, Callable[[], FittedModel]], None]
"""(iterations done, a function that makes the model of a fit whose burn-in ended there)."""


def fit(
    X: Any,
    y: Any,
    *,
    preset: str = "default",
    seed: int = 0,
    classes: Sequence[Any] | np.ndarray | None = None,
    calibration: float | None = None,
    init: Any = None,
    checkpoint: str | Path | None = None,
    every: float | None = None,
    verbose: bool = False,
    callbacks: Sequence[Callback] = (),
    monitor: Monitor | None = None,
    model: OwnModel | None = None,
    look: Monitor | None = None,
    **settings: Any,
) -> FittedModel:
    """Fit a deep GP to inputs X (rows, columns) and targets y (rows,) or (rows, targets).

    ``y`` holds numbers, counts or, in one column, classes, as ``likelihood`` says. ``classes`` lists the labels: give
    it for another order than the sorted one, or if some labels may be missing from y. ``settings`` replace those of
    the preset (``deepwell.Settings`` lists them). The same seed gives the same result.

    ``init`` is a fitted model or estimator. The fit starts from its units, hyperparameters and inducing outputs,
    whatever method found them. ``model`` is a ``DeepGP`` of your own in standardised units, or a function that makes
    one from the standardised inputs; it replaces ``depth``, ``width``, ``num_inducing``, ``kernel`` and ``likelihood``.

    Each of ``callbacks`` is called with a ``deepwell.Event`` after every chunk of iterations; ``deepwell.CsvLog`` is
    one. ``verbose`` shows a bar. ``monitor(iterations, model_now)`` is called between chunks too; ``model_now()`` makes
    the model that the fit would have ended with if its burn-in were over.

    ``calibration`` is a share of the rows to keep out of the fit. ``predict_interval(conformal=True)`` then has
    guaranteed coverage.

    ``checkpoint`` is a folder. The state of the fit is written there every so many seconds (60), and the same call
    resumes from it. Ctrl-C and SIGTERM end the fit after the current chunk with ``deepwell.Interrupted``, which
    carries the model of the samples drawn so far, if there are any.
    """
    if look is not None:
        warnings.warn("fit(look=...) is now fit(monitor=...); the old name goes with version 0.7", FutureWarning, 2)
        monitor = look
    source, callbacks = fitted_start(init), checked_callbacks(callbacks)
    if model is not None:
        refuse_shape_beside_model(settings)
    if source is not None:
        if model is not None:
            raise InputError("init= and model= are two starts: choose one")
        settings, classes = with_shape_of(source, settings), classes if classes is not None else source.classes
    chosen = make_settings(preset, **settings)
    held_out = None
    if calibration is not None:
        mask = _calibration_rows(y, chosen, classes, calibration, checked_seed(seed))
        held_out = take_rows(X, mask), take_rows(y, mask)
        X, y = take_rows(X, ~mask), take_rows(y, ~mask)
    started = time.perf_counter()
    prepared = prepare(X, y, chosen, checked_seed(seed), source, classes, model)
    if monitor is not None and not has_snapshots(prepared.run.phases):
        raise InputError("monitor cannot be had with inference='nuts' or with dsvi_start: no model can be made midway")

    def fitted_by_now(result: Result) -> FittedModel:
        return fitted_model(prepared, result, preset, time.perf_counter() - started)

    identity = partial(identity_of, X, prepared)
    with signal_watch() as watch:
        try:
            with (
                checkpointing(checkpoint, identity, every, watch.stop) as hooks,
                progress_bars(verbose) as bars,
                memory_advice(chosen, prepared.known["num_rows"]),
            ):
                announce = event_reporter((*callbacks, *bars), prepared.log_unit)
                if monitor is not None:
                    hooks = _monitored(hooks, monitor, lambda *now: fitted_by_now(snapshot(prepared.run, *now)))
                fitted = with_local_part(fitted_by_now(run_one(prepared.run, announce, hooks)), prepared)
        except Stopped as stopped:
            so_far = None if stopped.result is None else fitted_by_now(stopped.result)
            raise Interrupted(so_far, watch.caught or signal.SIGINT) from None
    if watch.caught is not None:  # too late to stop, but not to be told
        raise Interrupted(fitted, watch.caught)
    if fitted.numerical_issues(WORTH_A_WARNING):
        warnings.warn(fitted.numerical_issues(WORTH_A_WARNING), stacklevel=2)
    return fitted if held_out is None else fitted.calibrated(*held_out)


def _monitored(hooks: Hooks, monitor: Monitor, model_at: Callable[[Position, Any], FittedModel]) -> Hooks:
    """The hooks with the monitor called before each checkpoint, so that a resumed fit has missed no call."""

    def keep(position: Position, state: Any) -> None:
        monitor(position.trace[-1][0], lambda: model_at(position, state))
        hooks.keep(position, state)

    return hooks._replace(keep=keep)


def _calibration_rows(y: Any, chosen: Settings, classes: Any, share: Any, seed: int) -> np.ndarray:
    """Which rows calibrate, drawn at random."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise InputError(f"calibration={share!r} must be a share of the rows, between 0 and 1")
    response = read_response(y, response_kind(chosen.likelihood), classes)
    if response.kind == "classes":
        raise InputError(
            f"calibration needs a numeric target, because it is for intervals; {response.names[0]!r} is a class"
        )
    num_rows = len(response.values)
    count = round(share * num_rows)
    if not 0 < count < num_rows:
        raise InputError(f"calibration={share!r} of {num_rows} rows leaves no row to fit, or none to calibrate with")
    drawn = np.random.default_rng([STREAM, seed, 1]).choice(num_rows, count, replace=False)
    return np.isin(np.arange(num_rows), drawn)
