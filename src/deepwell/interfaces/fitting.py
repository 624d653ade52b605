"""``deepwell.fit``: a table in, a fitted model out."""

import time
import warnings
from typing import Any

import jax
import numpy as np

from deepwell.data.errors import InputError
from deepwell.data.rows import to_rows
from deepwell.data.scaling import fit_scaling
from deepwell.data.tables import is_frame, to_matrices
from deepwell.inference.problem import Problem
from deepwell.inference.run import Progress, run
from deepwell.interfaces.fitted import FittedModel
from deepwell.interfaces.progress import reporting
from deepwell.interfaces.settings import make_settings
from deepwell.model.deep_gp import split_parameters
from deepwell.model.initialise import initial_model
from deepwell.predict.posterior import with_noise

STREAM = 0xDEE9
"""Sets the random numbers of a fit apart from those of a split with the same seed."""


def fit(
    X: Any,
    y: Any,
    *,
    preset: str = "default",
    seed: int = 0,
    verbose: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> FittedModel:
    """Fit a deep GP to inputs X (rows, columns) and targets y (rows,) or (rows, targets).

    ``settings`` replace those of the preset (``deepwell.Settings`` lists them). The same seed gives the
    same result. ``progress(phase, done, total, log_likelihood)`` is called after every chunk of iterations;
    ``verbose`` shows a bar.
    """
    chosen = make_settings(preset, **settings)
    inputs, feature_names, targets, target_names = to_matrices(X, y)
    seed = checked_seed(seed)

    started = time.perf_counter()
    rng = np.random.default_rng([STREAM, seed])
    x_scaling, y_scaling = fit_scaling(inputs), fit_scaling(targets)
    standard_X, standard_y = x_scaling.standardise(inputs), y_scaling.standardise(targets)
    architecture = chosen.architecture(inputs.shape[1])
    model = initial_model(rng, standard_X, targets.shape[1], architecture)
    try:
        problem = Problem(*split_parameters(model, chosen.fixed))
    except ValueError as error:
        raise InputError(str(error)) from error
    run_key, noise_key = (jax.random.key(int(rng.integers(2**32))) for _ in range(2))
    rows = to_rows(rng, standard_X, standard_y)
    log_unit = float(np.sum(np.log(y_scaling.scale)))
    with reporting(progress, verbose, log_unit) as report:
        result = run(run_key, problem, rows, chosen.config(len(inputs)), report)

    fitted = FittedModel(
        posterior=with_noise(noise_key, result.model, result.samples),
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        feature_names=tuple(feature_names),
        named=is_frame(X),
        target_names=tuple(target_names),
        single_target=np.ndim(y) == 1,
        settings=chosen,
        preset=preset,
        seed=seed,
        num_rows=len(inputs),
        trace=tuple((iteration, value - log_unit) for iteration, value in result.trace),
        refused_moves=result.refused_moves,
        refused_updates=result.refused_updates,
        jitter_retries=result.jitter_retries,
        seconds=time.perf_counter() - started,
    )
    if fitted.troubles():
        warnings.warn(fitted.troubles(), stacklevel=2)
    return fitted


def checked_seed(seed: Any) -> int:
    """A seed that numpy and JAX both take."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be an integer from 0 to {2**32 - 1}")
    return int(seed)
