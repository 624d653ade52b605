"""From a table to what inference sees, and from the result of inference to a fitted model."""

import dataclasses
import hashlib
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.response import Response, read_response
from deepwell.data.rows import Rows, to_rows
from deepwell.data.scaling import Scaling, input_scaling
from deepwell.data.tables import require_same_rows, to_matrix
from deepwell.errors import InputError
from deepwell.fits.fitted import FittedModel
from deepwell.fits.local_part import learn_local_part
from deepwell.fits.settings import Settings
from deepwell.fits.start import OwnModel, make_problem, own_model, with_shape_of_model
from deepwell.inference.driver import Result, Run
from deepwell.inference.keys import local_part_key
from deepwell.model.likelihoods.registry import CLASSES, default_likelihood, initial_likelihood, response_kind
from deepwell.predict.local_part import LocalRows
from deepwell.store.checkpoint import column_digests
from deepwell.store.modules import fingerprint

FEWEST_LOCAL_ROWS = 20
STREAM = 0xDEE9
"""Sets the random numbers of a fit apart from those of a split with the same seed."""


class Prepared(NamedTuple):
    """A table ready for inference."""

    known: dict[str, Any]
    """Fields of the fitted model that do not depend on inference."""
    key: jax.Array
    problem: Any
    rows: Rows
    settings: Settings
    """As chosen, with a likelihood."""
    response: Response
    standardised: tuple[np.ndarray, np.ndarray]
    """X and y."""

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
    classes: Any = None,
    model: OwnModel | None = None,
) -> Prepared:
    """Check and scale the table, and choose where inference starts.

    ``init`` brings its own units and start, ``model`` its own shape and likelihood.
    """
    inputs = to_matrix(X, "X")
    x_scaling = input_scaling(inputs.values, chosen.input_scaling) if init is None else init.x_scaling
    own = None if model is None else own_model(model, x_scaling.standardise(inputs.values))
    if own is not None:
        chosen = with_shape_of_model(own, chosen)
    response = read_response(y, response_kind(chosen.likelihood), classes)
    require_same_rows(inputs.values, response.values)
    chosen = with_likelihood(chosen, response)
    rng = np.random.default_rng([STREAM, seed])
    y_scaling = response.scaling() if init is None else init.y_scaling
    known = {
        "x_scaling": x_scaling,
        "y_scaling": y_scaling,
        "feature_names": inputs.names,
        "feature_types": inputs.types,
        "named": inputs.named,
        "target_names": response.names,
        "classes": response.classes,
        "single_target": np.ndim(y) == 1,
        "seed": seed,
        "num_rows": len(inputs.values),
    }
    if init is not None:
        _check_same_columns(known, init)
    standard_X, standard_y = x_scaling.standardise(inputs.values), y_scaling.standardise(response.values)
    assert chosen.likelihood is not None
    likelihood = initial_likelihood(chosen.likelihood, response, chosen.noise_variance)
    problem = make_problem(rng, standard_X, standard_y.shape[1], chosen, likelihood, init, own)
    key = jax.random.key(int(rng.integers(2**32)))
    rows = to_rows(rng, standard_X, standard_y, chosen.config(len(inputs.values)).batch_size)
    return Prepared(known, key, problem, rows, chosen, response, (standard_X, standard_y))


def with_likelihood(settings: Settings, response: Response) -> Settings:
    """Settings with a likelihood: their own, or else the default for the response."""
    if settings.likelihood is not None and settings.likelihood != CLASSES:
        return settings
    default = default_likelihood(response, settings.traits.needs_smooth_likelihood)
    return dataclasses.replace(settings, likelihood=default)


def _check_same_columns(known: dict[str, Any], init: FittedModel) -> None:
    for what in ("feature_names", "target_names", "classes"):
        theirs, ours = (", ".join(str(name) for name in names or ()) for names in (getattr(init, what), known[what]))
        if theirs != ours:
            raise InputError(f"init was fitted with {what.replace('_', ' ')} {theirs}, but this table has {ours}")


def identity_of(X: Any, prepared: Prepared) -> dict[str, Any]:
    """Everything that decides the bits of the result."""
    from deepwell import __version__

    inputs, response = to_matrix(X, "X"), prepared.response
    start = hashlib.sha256()
    for leaf in jax.tree.leaves(prepared.problem):
        start.update(np.asarray(leaf).tobytes())
    return {
        "rows": len(inputs.values),
        "columns": column_digests([*inputs.names, *response.names], np.hstack([inputs.values, response.values])),
        "classes": [str(label) for label in response.classes or ()],
        "settings": {f.name: fingerprint(getattr(prepared.settings, f.name)) for f in dataclasses.fields(Settings)},
        "seed": prepared.known["seed"],
        "start": start.hexdigest()[:16],
        "precision": str(prepared.rows.X.dtype),
        "device": str(next(iter(prepared.rows.X.devices())).platform),
        "jax": jax.__version__,
        "deepwell": __version__,
    }


def fitted_model(prepared: Prepared, result: Result, preset: str, seconds: float, sharing: int = 1) -> FittedModel:
    """The model of a run; its seconds are divided among the members of a group."""
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


def with_local_part(model: FittedModel, prepared: Prepared) -> FittedModel:
    """The model with a local part, if its settings ask for one and there are rows enough."""
    wanted = model.settings.local
    if not wanted or prepared.response.kind != "numbers" or model.num_rows < FEWEST_LOCAL_ROWS:
        return model
    began = time.perf_counter()
    X, y = (np.asarray(jnp.asarray(values, float)) for values in prepared.standardised)
    learned = learn_local_part(model.posterior, X, y, local_part_key(prepared.key))
    local = LocalRows(learned.part.kernel, X, y, learned.part.num_neighbours, learned.gain)
    seconds = model.seconds + time.perf_counter() - began
    helps = wanted is True or learned.gain > 0.0
    return dataclasses.replace(model, local=local if helps else None, seconds=seconds)


def checked_seed(seed: Any) -> int:
    """A seed that both numpy and JAX accept."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be an integer from 0 to {2**32 - 1}")
    return int(seed)
