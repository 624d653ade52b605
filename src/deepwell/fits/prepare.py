"""A table made ready for inference, and a fitted model made of what inference found."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from deepwell.data.response import Targets
from deepwell.data.rows import Rows, to_rows
from deepwell.data.scaling import Scaling, input_scaling
from deepwell.data.tables import column_types, is_frame, require_same_rows, to_matrix
from deepwell.errors import InputError
from deepwell.fits.fitted import FittedModel
from deepwell.fits.likelihood import make_likelihood, read_targets, target_scaling, with_likelihood
from deepwell.fits.settings import Settings
from deepwell.fits.start import OwnModel, make_problem, own_model
from deepwell.inference.driver import Result, Run
from deepwell.store.checkpoint import column_digests
from deepwell.store.modules import fingerprint

STREAM = 0xDEE9
"""Sets the random numbers of a fit apart from those of a split with the same seed."""


class Prepared(NamedTuple):
    """A table made ready: what the fitted model remembers of it, and what inference sees."""

    known: dict[str, Any]
    key: jax.Array
    problem: Any
    rows: Rows
    settings: Settings
    """Those chosen, with the likelihood named."""
    targets: Targets

    @property
    def run(self) -> Run:
        """What the driver takes."""
        count = self.known["num_rows"]
        return Run(self.key, self.problem, self.rows, self.settings.config(count), self.settings.rates(count))

    @property
    def log_unit(self) -> float:
        """log of the volume of one standardised unit of y, in the units of y."""
        scaling: Scaling = self.known["y_scaling"]
        return float(np.sum(np.log(scaling.scale)))


def prepare(
    X: Any,
    y: Any,
    chosen: Settings,
    seed: int,
    init: FittedModel | None = None,
    classes: Sequence[Any] | None = None,
    model: OwnModel | None = None,
) -> Prepared:
    """Check and scale the table, choose where inference starts; ``init`` brings its own units and start."""
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
    num_targets = standard_y.shape[1]
    likelihood = make_likelihood(chosen, targets)
    own = None if model is None else own_model(model, standard_X, num_targets)
    problem = make_problem(rng, standard_X, num_targets, chosen, likelihood, init, own)
    key = jax.random.key(int(rng.integers(2**32)))
    rows = to_rows(rng, standard_X, standard_y, chosen.config(len(inputs)).batch_size)
    return Prepared(known, key, problem, rows, chosen, targets)


def _check_same_columns(known: dict[str, Any], init: FittedModel) -> None:
    for what in ("feature_names", "target_names", "classes"):
        theirs, ours = (", ".join(str(name) for name in names or ()) for names in (getattr(init, what), known[what]))
        if theirs != ours:
            raise InputError(f"init was fitted with {what.replace('_', ' ')} {theirs}, but this table has {ours}")


def identity_of(X: Any, prepared: Prepared) -> dict[str, Any]:
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
        "settings": {f.name: fingerprint(getattr(prepared.settings, f.name)) for f in dataclasses.fields(Settings)},
        "seed": prepared.known["seed"],
        "start": start.hexdigest()[:16],
        "precision": str(prepared.rows.X.dtype),
        "device": str(next(iter(prepared.rows.X.devices())).platform),
        "jax": jax.__version__,
        "deepwell": __version__,
    }


def fitted_model(prepared: Prepared, result: Result, preset: str, seconds: float, sharing: int = 1) -> FittedModel:
    """What a run came to; its seconds are shared out among the members of a group."""
    return FittedModel(
        posterior=result.posterior,
        settings=prepared.settings,
        preset=preset,
        trace=tuple((iteration, value - prepared.log_unit) for iteration, value in result.trace),
        seconds=(result.earlier_seconds + seconds) / sharing,
        **prepared.known,
        refused_moves=int(result.issues.refused_moves),
        refused_updates=int(result.issues.refused_updates),
        jitter_retries=int(result.issues.jitter_retries),
        jitter_grew=tuple(int(count) for count in result.issues.jitter_grew),
    )


def checked_seed(seed: Any) -> int:
    """A seed that numpy and JAX both take."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be an integer from 0 to {2**32 - 1}")
    return int(seed)
