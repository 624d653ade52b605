"""``deepwell.fit``: a table in, a fitted model out."""

import dataclasses
import hashlib
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.errors import InputError
from deepwell.data.rows import Rows, to_rows
from deepwell.data.scaling import Scaling, input_scaling
from deepwell.data.tables import column_types, is_frame, require_same_rows, take_rows, to_matrix
from deepwell.data.targets import Targets
from deepwell.inference.run import Keeper, Place, Result, Stopped, run, run_group, worth_now
from deepwell.interfaces.callbacks import Callback, announcing, checked_callbacks
from deepwell.interfaces.checkpoints import checkpointing, column_digests
from deepwell.interfaces.fitted import FittedModel
from deepwell.interfaces.interrupting import Interrupted, watching
from deepwell.interfaces.memory import explaining_memory
from deepwell.interfaces.progress import showing
from deepwell.interfaces.reading import make_likelihood, read_targets, target_scaling, union_of_classes, with_likelihood
from deepwell.interfaces.settings import Settings, make_settings
from deepwell.interfaces.starting import checked_start, make_problem, with_shape_of

STREAM = 0xDEE9
"""Sets the random numbers of a fit apart from those of a split with the same seed."""
WORTH_A_WARNING = 0.01
"""Share of the iterations in which the jitter may grow without a word."""

Look = Callable[[int, Callable[[], FittedModel]], None]
"""(iterations done, a function that makes the model of a fit whose burn-in ended there)."""


class Prepared(NamedTuple):
    """A table made ready: what the fitted model remembers of it, and what inference sees."""

    known: dict[str, Any]
    key: jax.Array
    problem: Any
    rows: Rows
    settings: Settings
    """Those chosen, with the likelihood named."""
    targets: Targets


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
    if calibration is not None:
        kept_out = _kept_out(y, chosen, calibration, checked_seed(seed))
        options: dict[str, Any] = {"preset": preset, "seed": seed, "init": init, "verbose": verbose}
        options |= {"checkpoint": checkpoint, "every": every, "callbacks": callbacks, "look": look, **settings}
        on_the_rest = fit(take_rows(X, ~kept_out), take_rows(y, ~kept_out), **options)
        return on_the_rest.calibrated(take_rows(X, kept_out), take_rows(y, kept_out))
    if look is not None and (chosen.inference == "nuts" or chosen.dsvi_start):
        raise InputError("look cannot be had with inference='nuts' or with dsvi_start: no model can be made midway")
    started = time.perf_counter()
    prepared = _prepare(X, y, chosen, checked_seed(seed), source, classes)

    def fitted_by_now(result: Result) -> FittedModel:
        return _fitted(prepared, result, preset, time.perf_counter() - started)

    identity = partial(_identity, X, prepared)
    try:
        with (
            watching() as watch,
            checkpointing(checkpoint, identity, every, watch.stop) as keeper,
            showing(verbose) as bars,
            explaining_memory(chosen, prepared.known["num_rows"]),
        ):
            announce = announcing((*callbacks, *bars), _log_unit(prepared))
            problem = (prepared.key, prepared.problem, prepared.rows, _config(prepared))
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
    return fitted


def _looked_at(keeper: Keeper, look: Look, model_at: Callable[[Place, Any], FittedModel]) -> Keeper:
    """The keeper with a look at the fit before each checkpoint, so that one who goes on from it has missed none."""

    def keep(place: Place, state: Any) -> None:
        look(place.trace[-1][0], lambda: model_at(place, state))
        keeper.keep(place, state)

    return keeper._replace(keep=keep)


def _kept_out(y: Any, chosen: Settings, share: Any, seed: int) -> np.ndarray:
    """Which rows calibrate, drawn at random."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise InputError(f"calibration={share!r} must be a share of the rows, between 0 and 1")
    values, _, classes = read_targets(y, chosen)
    if classes is not None:
        raise InputError("calibration is for intervals, and y is a class")
    count = round(share * len(values))
    if not 0 < count < len(values):
        raise InputError(f"calibration={share!r} of {len(values)} rows leaves none for one of the two")
    chosen_rows = np.random.default_rng([STREAM, seed, 1]).choice(len(values), count, replace=False)
    return np.isin(np.arange(len(values)), chosen_rows)


def fit_group(
    tables: Sequence[tuple[Any, Any]],
    seeds: Sequence[int],
    *,
    preset: str = "default",
    classes: Sequence[Any] | None = None,
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
        classes = union_of_classes([y for _, y in tables], chosen)
    pairs = list(zip(tables, seeds, strict=True))
    members = [_prepare(*table, chosen, checked_seed(seed), None, classes) for table, seed in pairs]
    shapes = {(str(jax.tree.map(jnp.shape, (m.problem, m.rows))), _config(m)) for m in members}
    if len(shapes) > 1 or len(members) == 1:
        options = {"preset": preset, "classes": classes, "verbose": verbose, "every": every, **settings}
        folders = [None if checkpoint is None else Path(checkpoint) / str(i) for i in range(len(pairs))]
        return [
            fit(*table, seed=seed, checkpoint=f, **options) for (table, seed), f in zip(pairs, folders, strict=True)
        ]
    keys = jnp.stack([m.key for m in members])
    problem, rows = jax.tree.map(lambda *x: jnp.stack(x), *[(m.problem, m.rows) for m in members])
    log_unit = float(np.mean([_log_unit(m) for m in members]))
    try:
        with (
            watching() as watch,
            checkpointing(checkpoint, partial(_group_identity, tables, members), every, watch.stop) as keeper,
            showing(verbose) as bars,
            explaining_memory(chosen, members[0].known["num_rows"]),
        ):
            results = run_group(keys, problem, rows, _config(members[0]), announcing(bars, log_unit), keeper)
    except Stopped:
        raise Interrupted(None, watch.caught or signal.SIGINT) from None
    if watch.caught is not None:
        raise Interrupted(None, watch.caught)
    seconds = time.perf_counter() - started
    models = [_fitted(m, result, preset, seconds, len(members)) for m, result in zip(members, results, strict=True)]
    for i, model in enumerate(models):
        if model.troubles(WORTH_A_WARNING):
            warnings.warn(f"table {i}: {model.troubles(WORTH_A_WARNING)}", stacklevel=2)
    return models


def _group_identity(tables: Sequence[tuple[Any, Any]], members: Sequence[Prepared]) -> dict[str, Any]:
    return {f"table {i}": _identity(X, m) for i, ((X, _), m) in enumerate(zip(tables, members, strict=True))}


def _identity(X: Any, prepared: Prepared) -> dict[str, Any]:
    """Everything that decides the bits of the result."""
    from deepwell import __version__

    inputs, feature_names = to_matrix(X, "X")
    targets = prepared.targets
    start = hashlib.sha256()
    for leaf in jax.tree.leaves(prepared.problem):
        start.update(np.asarray(leaf).tobytes())
    return {
        "rows": len(inputs),
        "columns": column_digests([*feature_names, *targets.names], np.hstack([inputs, targets.values])),
        "classes": [str(label) for label in targets.classes or ()],
        "settings": dataclasses.asdict(prepared.settings),
        "seed": prepared.known["seed"],
        "start": start.hexdigest()[:16],
        "precision": str(prepared.rows.X.dtype),
        "device": str(next(iter(prepared.rows.X.devices())).platform),
        "jax": jax.__version__,
        "deepwell": __version__,
    }


def _prepare(
    X: Any, y: Any, chosen: Settings, seed: int, init: FittedModel | None, classes: Sequence[Any] | None = None
) -> Prepared:
    inputs, feature_names = to_matrix(X, "X")
    targets = read_targets(y, chosen, classes)
    require_same_rows(inputs, targets.values)
    chosen = with_likelihood(chosen, targets)
    rng = np.random.default_rng([STREAM, seed])
    if init is None:
        scalings = input_scaling(inputs, chosen.input_scaling), target_scaling(targets, chosen)
    else:
        scalings = init.x_scaling, init.y_scaling
    known = {
        "x_scaling": scalings[0],
        "y_scaling": scalings[1],
        "feature_names": tuple(feature_names),
        "feature_types": column_types(X),
        "named": is_frame(X),
        "target_names": tuple(targets.names),
        "classes": targets.classes,
        "single_target": np.ndim(y) == 1,
        "seed": seed,
        "num_rows": len(inputs),
    }
    if init is not None:
        _check_same_columns(known, init)
    standard_X, standard_y = (s.standardise(v) for s, v in zip(scalings, (inputs, targets.values), strict=True))
    problem = make_problem(rng, standard_X, standard_y, chosen, make_likelihood(chosen, targets), init)
    key = jax.random.key(int(rng.integers(2**32)))
    rows = to_rows(rng, standard_X, standard_y, chosen.config(len(inputs)).batch_size)
    return Prepared(known, key, problem, rows, chosen, targets)


def _check_same_columns(known: dict[str, Any], init: FittedModel) -> None:
    for what in ("feature_names", "target_names", "classes"):
        theirs, ours = (", ".join(str(name) for name in names or ()) for names in (getattr(init, what), known[what]))
        if theirs != ours:
            raise InputError(f"init was fitted with {what.replace('_', ' ')} {theirs}, but this table has {ours}")


def _config(prepared: Prepared) -> Any:
    return prepared.settings.config(prepared.known["num_rows"])


def _log_unit(prepared: Prepared) -> float:
    scaling: Scaling = prepared.known["y_scaling"]
    return float(np.sum(np.log(scaling.scale)))


def _fitted(prepared: Prepared, result: Result, preset: str, seconds: float, sharing: int = 1) -> FittedModel:
    """What a run came to; its seconds are shared out among the members of a group."""
    log_unit = _log_unit(prepared)
    return FittedModel(
        posterior=result.posterior,
        settings=prepared.settings,
        preset=preset,
        trace=tuple((iteration, value - log_unit) for iteration, value in result.trace),
        seconds=(result.earlier_seconds + seconds) / sharing,
        **prepared.known,
        refused_moves=int(result.troubles.refused_moves),
        refused_updates=int(result.troubles.refused_updates),
        jitter_retries=int(result.troubles.jitter_retries),
        jitter_grew=tuple(int(count) for count in result.troubles.jitter_grew),
    )


def checked_seed(seed: Any) -> int:
    """A seed that numpy and JAX both take."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be an integer from 0 to {2**32 - 1}")
    return int(seed)
