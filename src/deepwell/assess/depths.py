"""``deepwell depths``: does depth help on this table? One fit per depth, scored on the same rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepwell.data.response import shared_classes
from deepwell.data.splits import split_rows
from deepwell.data.tables import take_rows, to_matrix
from deepwell.doors import plots
from deepwell.errors import InputError
from deepwell.fits.events import Callback
from deepwell.fits.fit import fit
from deepwell.fits.fitted import FittedModel
from deepwell.fits.prepare import checked_seed
from deepwell.fits.presets import make_settings
from deepwell.fits.settings import Settings
from deepwell.model.likelihoods.registry import response_kind
from deepwell.predict.arviz import MIN_DRAWS, require_arviz
from deepwell.predict.depth_comparison import DepthComparison

WAYS = ("validation", "loo")


def compare_depths(
    X: Any,
    y: Any,
    depths: Sequence[int] = (1, 2, 3, 4),
    *,
    by: str = "validation",
    validation: float = 0.2,
    seed: int = 0,
    preset: str = "default",
    classes: Sequence[Any] | None = None,
    verbose: bool = False,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> DepthComparison:
    """Fit every depth once and compare log p(y_i) row by row; ``print`` the result for a verdict.

    ``by="validation"`` holds a share of the rows out of all fits and scores the fits on them. ``by="loo"`` fits all
    rows and estimates p(y_i | the other rows) from the samples (PSIS, needs ArviZ). It uses every row, but the
    hyperparameters have seen row i, which flatters models with more of them. Other options are those of
    ``deepwell.fit``, the same for every depth. The standard errors account for the choice of rows, not for the seed of
    the fit.
    """
    chosen = _check_options(depths, by, validation)
    if "depth" in settings:
        raise InputError("depth cannot be a setting here: name the depths to compare (depths=..., or --depth)")
    if by == "loo":
        _require_samples(make_settings(preset, **settings))
    if classes is None:
        classes = shared_classes([y], response_kind(make_settings(preset, **settings).likelihood))
    options: dict[str, Any] = {"seed": seed, "preset": preset, "classes": classes, "verbose": verbose, **settings}
    rows = np.arange(len(to_matrix(X, "X").values))
    train, test = split_rows(len(rows), 0, checked_seed(seed), validation) if by == "validation" else (rows, rows)
    if min(len(train), len(test)) < 2:
        raise InputError(f"{len(rows)} rows are too few for validation={validation}")
    training, scored = [(take_rows(X, part), take_rows(y, part)) for part in (train, test)]
    models = [fit(*training, depth=depth, callbacks=callbacks, **options) for depth in chosen]
    seconds = tuple(model.seconds for model in models)
    if by == "loo":
        log_densities, shapes = zip(*(model.leave_one_out(*scored) for model in models), strict=True)
        return DepthComparison(chosen, np.stack(log_densities), by, seconds, np.stack(shapes))
    return DepthComparison(chosen, np.stack([_log_densities(model, *scored) for model in models]), by, seconds)


def _require_samples(settings: Settings) -> None:
    """Refuse, before the fits, settings that leave-one-out could not score after them."""
    if settings.traits.variational:
        raise InputError(f"by='loo' needs posterior samples, and {settings.inference} has none: use by='validation'")
    if settings.num_samples < MIN_DRAWS:
        raise InputError(f"by='loo' needs at least {MIN_DRAWS} samples per chain, not {settings.num_samples}")
    require_arviz()


def _log_densities(model: FittedModel, X: Any, y: Any) -> np.ndarray:
    """log (1/S) sum_s p(y_i | sample s)."""
    from scipy.special import logsumexp

    per_sample = model.log_likelihoods(X, y)
    return logsumexp(per_sample, axis=0) - np.log(len(per_sample))


def draw_comparison(comparison: DepthComparison, path: Path) -> None:
    """Save a picture of the comparison."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    plots.depths(figure.subplots(), comparison)
    figure.savefig(path, dpi=130)


def _check_options(depths: Sequence[int], by: str, validation: float) -> tuple[int, ...]:
    if by not in WAYS:
        raise InputError(f"by={by!r}: choose from {', '.join(WAYS)}")
    if not 0.0 < validation < 1.0:
        raise InputError(f"validation={validation!r} must lie strictly between 0 and 1")
    chosen = tuple(int(depth) for depth in depths)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"depths={depths!r} must list at least one depth, and none twice")
    for depth in chosen:
        make_settings(depth=depth)
    return chosen
