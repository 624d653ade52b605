"""Whether the fields of a model that was read fit together. Nothing is predicted: shapes alone are computed."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deepwell.inference.posterior import Functions, Posterior
from deepwell.model import likelihoods
from deepwell.model.likelihoods import Likelihood, Marginal, Probabilities
from deepwell.model.likelihoods.registry import LIKELIHOODS
from deepwell.model.local import LocalKernel
from deepwell.numerics.linalg import MAX_RETRIES

LARGEST_LABEL = 2**53
LARGEST_COUNT = 2**53
MOST_NEIGHBOURS = 2**12
NAMES, FLAGS, COUNTS = (
    ("feature_names", "target_names"),
    ("named", "single_target"),
    ("seed", "num_rows", "refused_moves", "refused_updates", "jitter_retries"),
)


def require_sound(fields: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless the fields of a fitted model have the right types and agree with each other."""
    _require_plain_fields(fields)
    _require_classes(fields["classes"])
    _require_posterior(fields["posterior"])
    _require_scalings(fields)
    _require_local(fields)
    _require_likelihood(fields["posterior"].likelihoods()[0], fields["settings"]["likelihood"])
    _require_predictions(
        fields["posterior"], len(fields["feature_names"]), len(fields["target_names"]), fields["classes"]
    )


def _require_plain_fields(fields: dict[str, Any]) -> None:
    for name in NAMES:
        names = fields[name]
        if not isinstance(names, tuple) or not names or not all(isinstance(item, str) for item in names):
            raise ValueError(f"{name} must be names")
    for name in FLAGS:
        if not isinstance(fields[name], bool):
            raise ValueError(f"{name} must be true or false")
    for name in COUNTS:
        count = fields[name]
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < LARGEST_COUNT:
            raise ValueError(f"{name} must be a whole number")
    if fields["jitter_retries"] > MAX_RETRIES:
        raise ValueError("jitter_retries is out of bounds")
    if not isinstance(fields["preset"], str) or not math.isfinite(fields["seconds"]):
        raise ValueError("preset must be text and seconds a number")
    if not all(isinstance(count, int) for count in fields["jitter_grew"]):
        raise ValueError("jitter_grew must be whole numbers")
    if not all(isinstance(kind, str) for kind in fields["feature_types"]):
        raise ValueError("feature_types must be names")
    if not all(isinstance(i, int) and isinstance(fit, float | int) for i, fit in fields["trace"]):
        raise ValueError("trace must be pairs of numbers")
    if fields["single_target"] and len(fields["target_names"]) != 1:
        raise ValueError("one target cannot have several names")


def _require_classes(classes: Any) -> None:
    if classes is None:
        return
    if not isinstance(classes, tuple):
        raise ValueError("classes must be a list")
    as_text = all(isinstance(label, str) for label in classes)
    if not as_text and not all(isinstance(x, bool | int | float) and abs(x) < LARGEST_LABEL for x in classes):
        raise ValueError("classes must be all text, or all numbers")
    if len(classes) < 2 or len(np.unique(np.asarray(classes))) < len(classes):
        raise ValueError("classes must be two or more different labels")


def _require_posterior(posterior: Any) -> None:
    if not isinstance(posterior, Posterior):
        raise ValueError("it holds no posterior")
    for leaf in jax.tree.leaves(posterior):
        if np.size(leaf) == 0 or not bool(jnp.all(jnp.isfinite(leaf))):
            raise ValueError("it holds arrays that are empty or not finite")
    if min(posterior.draws) < 1:
        raise ValueError("it holds no samples")


def _require_scalings(fields: dict[str, Any]) -> None:
    for name, columns in (("x_scaling", "feature_names"), ("y_scaling", "target_names")):
        scaling, count = fields[name], len(fields[columns])
        if scaling.offset.shape != (count,) or scaling.scale.shape != (count,):
            raise ValueError("the scaling does not fit the columns")
        if not np.all(np.isfinite(np.stack(scaling))) or not np.all(scaling.scale > 0.0):
            raise ValueError("the scaling must be finite and positive")
    scores, targets = fields["conformity"], len(fields["target_names"])
    if scores is not None and (scores.ndim != 2 or scores.shape[1] != targets or not np.all(np.isfinite(scores))):
        raise ValueError("the scores of calibration rows do not fit the target")


def _require_local(fields: dict[str, Any]) -> None:
    """The training rows fit the columns, and the kernel's numbers fit the rows."""
    local, inputs, targets = fields["local"], len(fields["feature_names"]), len(fields["target_names"])
    if local is None:
        return
    rows = len(local.X)
    if not isinstance(local.kernel, LocalKernel) or fields["classes"] is not None:
        raise ValueError("the local part has no kernel, or the target is a class")
    if not isinstance(local.gain, float) or not math.isfinite(local.gain):
        raise ValueError("the gain of the local part must be a number")
    if local.X.shape != (rows, inputs) or local.y.shape != (rows, targets) or rows != fields["num_rows"]:
        raise ValueError("the training rows do not fit the columns")
    if not np.all(np.isfinite(local.X)) or not np.all(np.isfinite(local.y)):
        raise ValueError("the training rows must be finite")
    if not isinstance(local.num_neighbours, int) or not 0 < local.num_neighbours <= min(rows, MOST_NEIGHBOURS):
        raise ValueError("num_neighbours is out of bounds")
    sizes = {field.name: (targets,) for field in dataclasses.fields(local.kernel) if field.name != "tail"}
    sizes["log_lengthscales"] = (inputs + targets,)
    numbers = {name: getattr(local.kernel, name) for name in sizes}
    if local.kernel.tail is not None:
        sizes["log_degrees"], numbers["log_degrees"] = (targets,), local.kernel.tail.log_degrees
    for name, values in numbers.items():
        if values.shape != sizes[name] or np.any(np.isnan(values)) or np.any(np.asarray(values) == np.inf):
            raise ValueError(f"{name} of the local part does not fit")


def _require_likelihood(likelihood: Likelihood, setting: Any) -> None:
    """The setting is the name of a built-in likelihood, or an object of the same class."""
    if type(likelihood) is not (LIKELIHOODS[setting].cls if isinstance(setting, str) else type(setting)):
        raise ValueError("the likelihood is not the one of the settings")
    if isinstance(likelihood, likelihoods.RobustMax) and not 0.0 < likelihood.epsilon < 1.0:
        raise ValueError("epsilon must lie between 0 and 1")


def _functions(posterior: Posterior, X: Array) -> Functions:
    return posterior.functions(posterior.prepare(), X)


def _marginals(posterior: Posterior, functions: Functions) -> Marginal:
    return posterior.marginals(functions)


def _require_predictions(posterior: Posterior, inputs: int, targets: int, classes: tuple[Any, ...] | None) -> None:
    """Functions and predictions at two rows would have the shapes that the columns ask for."""
    dtype = next(x.dtype for x in jax.tree.leaves(posterior) if eqx.is_inexact_array(x))
    rows = jax.ShapeDtypeStruct((2, inputs), dtype)
    means, variances = jax.eval_shape(_functions, posterior, rows)
    samples, latents = math.prod(posterior.draws), posterior.likelihoods()[0].num_latents(targets)
    if means.shape != (samples, 2, latents) or variances.shape not in ((samples, 2, 1), (samples, 2, latents)):
        raise ValueError(f"functions would have shape {means.shape}")
    marginals = jax.eval_shape(_marginals, posterior, (means, variances))
    shape = (samples, 2, targets if classes is None else len(classes))
    if jax.tree.leaves(marginals)[0].shape[:3] != shape or isinstance(marginals, Probabilities) != (
        classes is not None
    ):
        raise ValueError("predictions would not have the shape of the target")
