"""``deepwell.fit``: a table in, a fitted model out."""

import signal
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.tables import take_rows
from deepwell.errors import InputError
from deepwell.fits.events import Callback, announcing, checked_callbacks
from deepwell.fits.fitted import FittedModel
from deepwell.fits.interrupt import Interrupted, watching
from deepwell.fits.likelihood import read_targets
from deepwell.fits.memory import explaining_memory
from deepwell.fits.prepare import STREAM, checked_seed, fitted_model, identity_of, prepare
from deepwell.fits.presets import make_settings
from deepwell.fits.progress import showing
from deepwell.fits.settings import Settings
from deepwell.fits.start import OwnModel, fitted_start, with_shape_of, with_shape_of_model
from deepwell.inference.driver import Hooks, Position, Result, Stopped, has_snapshots, run_one, snapshot
from deepwell.store.checkpoint import checkpointing

WORTH_A_WARNING = 0.01
"""Share of the iterations in which the jitter may grow without a word."""

Look = Callable[[int, Callable[[], FittedModel]], None]
"""(iterations done, a function that makes the model of a fit whose burn-in ended there)."""


def fit(
    X: Any,
    y: Any,
    *,
    preset: str = "default",
    seed: int = 0,
    classes: Sequence[Any] | None = None,
    calibration: float | None = None,
    init: Any = None,
    checkpoint: str | Path | None = None,
    every: float | None = None,
    verbose: bool = False,
    callbacks: Sequence[Callback] = (),
    look: Look | None = None,
    **settings: Any,
) -> FittedModel:
    """Fit a deep GP to inputs X (rows, columns) and targets y (rows,) or (rows, targets).

    y is numbers, counts or, one column of them, classes, as ``likelihood`` says; ``classes`` are the labels in the
    order wanted, if it is not the sorted one, or if some may be missing from y. ``settings`` replace those of the
    preset (``deepwell.Settings`` lists them). The same seed gives the same result. ``init`` is a fitted model, or a
    fitted estimator, whose units, hyperparameters and inducing outputs the fit starts from, whatever method found
    them. Each of ``callbacks`` is called with a ``deepwell.Event`` after every chunk of iterations
    (``deepwell.CsvLog`` is one); ``verbose`` shows a bar. ``look(iterations, model_now)`` is called between chunks too,
    and ``model_now()`` makes the model that the fit would have ended with if its burn-in were over.

    ``calibration`` is a share of the rows to keep out of the fit, so that ``predict_interval(conformal=True)`` has
    guaranteed coverage.

    ``checkpoint`` is a folder: the state of the fit is written there every so many seconds (60), and the same call
    goes on from it. Ctrl-C and SIGTERM end the fit after the current chunk with ``deepwell.Interrupted``, which
    carries the model of the samples drawn so far, if there are any.
    """
    source, callbacks = checked_start(init), checked_callbacks(callbacks)
    if source is not None:
        settings, classes = with_shape_of(source, settings), classes if classes is not None else source.classes
    chosen = make_settings(preset, **settings)
    held_out = None
    if calibration is not None:
        mask = _calibration_rows(y, chosen, classes, calibration, checked_seed(seed))
        held_out = take_rows(X, mask), take_rows(y, mask)
        X, y = take_rows(X, ~mask), take_rows(y, ~mask)
    if look is not None and (chosen.inference == "nuts" or chosen.dsvi_start):
        raise InputError("look cannot be had with inference='nuts' or with dsvi_start: no model can be made midway")
    started = time.perf_counter()
    prepared = prepare(X, y, chosen, checked_seed(seed), source, classes)

    def fitted_by_now(result: Result) -> FittedModel:
        return fitted_model(prepared, result, preset, time.perf_counter() - started)

    identity = partial(identity_of, X, prepared)
    with watching() as watch:
        try:
            with (
                checkpointing(checkpoint, identity, every, watch.stop) as keeper,
                showing(verbose) as bars,
                explaining_memory(chosen, prepared.known["num_rows"]),
            ):
                announce = announcing((*callbacks, *bars), prepared.log_unit)
                problem = (prepared.key, prepared.problem, prepared.rows, prepared.config)
                if look is not None:
                    keeper = _looked_at(keeper, look, lambda *now: fitted_by_now(worth_now(*problem, *now)))
                fitted = fitted_by_now(run(*problem, announce, keeper))
        except Stopped as stopped:
            model = None if stopped.result is None else fitted_by_now(stopped.result)
            raise Interrupted(model, watch.caught or signal.SIGINT) from None
    if watch.caught is not None:  # too late to stop, but not to be told
        raise Interrupted(fitted, watch.caught)
    if fitted.troubles(WORTH_A_WARNING):
        warnings.warn(fitted.troubles(WORTH_A_WARNING), stacklevel=2)
    return fitted if held_out is None else fitted.calibrated(*held_out)


def _looked_at(keeper: Keeper, look: Look, model_at: Callable[[Place, Any], FittedModel]) -> Keeper:
    """The keeper with a look at the fit before each checkpoint, so that one who goes on from it has missed none."""

    def keep(place: Place, state: Any) -> None:
        look(place.trace[-1][0], lambda: model_at(place, state))
        keeper.keep(place, state)

    return keeper._replace(keep=keep)


def _calibration_rows(y: Any, chosen: Settings, classes: Sequence[Any] | None, share: Any, seed: int) -> np.ndarray:
    """Which rows calibrate, drawn at random."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise InputError(f"calibration={share!r} must be a share of the rows, between 0 and 1")
    targets = read_targets(y, chosen, classes)
    if targets.classes is not None:
        raise InputError(
            f"calibration needs a numeric target, because it is for intervals; {targets.names[0]!r} is a class"
        )
    num_rows = len(targets.values)
    count = round(share * num_rows)
    if not 0 < count < num_rows:
        raise InputError(f"calibration={share!r} of {num_rows} rows leaves no row to fit, or none to calibrate with")
    drawn = np.random.default_rng([STREAM, seed, 1]).choice(num_rows, count, replace=False)
    return np.isin(np.arange(num_rows), drawn)
