"""Model files: the posterior, how it was found, and what is needed to predict from a table."""

import dataclasses
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.scaling import Scaling
from deepwell.fits.presets import make_settings
from deepwell.inference import posterior as posteriors
from deepwell.model import kernels, likelihoods, means
from deepwell.model.deep_gp import DeepGP
from deepwell.model.gaussian_outputs import GaussianOutputs
from deepwell.model.layers import Layer
from deepwell.model.net import Net
from deepwell.numerics.linalg import MAX_RETRIES
from deepwell.store.tensor_file import DeepwellFileError, Tensors, read_container, write_container

if TYPE_CHECKING:
    from deepwell.fits.fitted import FittedModel

KIND, FORMAT = "model", 3
LARGEST_NUMBER = 2**31
"""No whole number in the description of a posterior is larger."""
LARGEST_LABEL = 2**53
LARGEST_SIDE = 2**14
"""Inducing inputs of a layer that are accepted: their kernel matrix has this many rows and columns."""
LIKELIHOODS: dict[str, type[eqx.Module]] = {
    "gaussian": likelihoods.Gaussian, "student-t": likelihoods.StudentT, "poisson": likelihoods.Poisson,
    "heteroscedastic": likelihoods.HeteroscedasticGaussian, "robust-max": likelihoods.RobustMax,
    "softmax": likelihoods.Softmax, "bernoulli": likelihoods.ProbitBernoulli,
    "bernoulli-logit": likelihoods.LogitBernoulli,
}  # fmt: skip
_KNOWN: tuple[type[eqx.Module], ...] = (
    posteriors.SharedTheta, posteriors.OwnTheta, posteriors.Variational, posteriors.Networks, GaussianOutputs, Net,
    DeepGP, Layer, *LIKELIHOODS.values(), means.Zero, means.Identity, means.PaddedIdentity, means.PrincipalProjection,
    kernels.Linear, kernels.Sum, kernels.Product, *kernels.STATIONARY.values(),
)  # fmt: skip
CLASSES = {cls.__name__: cls for cls in _KNOWN}
PLAIN = (
    "feature_names", "named", "target_names", "single_target", "preset", "seed", "num_rows", "trace", "refused_moves",
    "refused_updates", "jitter_retries", "jitter_grew", "feature_types", "seconds", "classes",
)  # fmt: skip

LATER = ("jitter_grew", "feature_types", "classes")
"""Parts that early files lack."""

BEFORE = {"likelihood": "gaussian", "control_variates": False}
"""Settings that early files lack, as they were then."""

NAMES, FLAGS, COUNTS = (
    ("feature_names", "target_names"),
    ("named", "single_target"),
    ("seed", "num_rows", "refused_moves", "refused_updates", "jitter_retries"),
)


def save(fitted: "FittedModel", path: str | Path) -> None:
    """Write atomically: a failure leaves whatever was at ``path`` as it was."""
    from deepwell import __version__

    tensors: Tensors = {}
    described = {
        "versions": {"deepwell": __version__, "jax": jax.__version__},
        "made": {"when": datetime.now(UTC).isoformat(timespec="seconds"), "device": jax.devices()[0].device_kind},
        "posterior": _describe(fitted.posterior, "posterior", tensors),
        "settings": dataclasses.asdict(fitted.settings),
        **{name: getattr(fitted, name) for name in PLAIN},
    }
    if fitted.conformity is not None:
        tensors["conformity"] = fitted.conformity
    for name in ("x_scaling", "y_scaling"):
        for part, array in getattr(fitted, name)._asdict().items():
            tensors[f"{name}.{part}"] = np.asarray(array)
    write_container(Path(path), KIND, FORMAT, described, tensors)


def load(path: str | Path) -> "FittedModel":
    """Read a model file; predictions equal those of the model that was saved."""
    from deepwell.fits.fitted import FittedModel

    path = Path(path)
    described, tensors = read_container(path, KIND, (1, 2, FORMAT))
    try:
        if described["format"] == 1:
            described["posterior"] = _posterior_of_format_1(described["model"])
        posterior = _rebuild(described["posterior"], tensors)
        x_scaling, y_scaling = (
            Scaling(*(tensors[f"{name}.{part}"] for part in Scaling._fields)) for name in ("x_scaling", "y_scaling")
        )
        plain = {name: _tuples(described[name]) for name in PLAIN if name not in LATER or name in described}
        chosen = {name: _tuples(value) for name, value in described["settings"].items()}
        settings = make_settings(**{**BEFORE, **chosen})
        plain |= {"x_scaling": x_scaling, "y_scaling": y_scaling, "conformity": tensors.get("conformity")}
        model = FittedModel(posterior=posterior, settings=settings, **plain)
        _require_sound(model)
    except Exception as error:  # a hostile file may fail in any way, and all of them mean one thing
        raise DeepwellFileError(f"{path} is damaged: {error!r:.300}") from error
    return model


def _require_sound(model: "FittedModel") -> None:
    """Types of the plain parts, and that predictions have the right shape, found without computing any."""
    for name in NAMES:
        value = getattr(model, name)
        if not isinstance(value, tuple) or not value or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name} must be names")
    for name in FLAGS:
        if not isinstance(getattr(model, name), bool):
            raise ValueError(f"{name} must be true or false")
    for name in COUNTS:
        count = getattr(model, name)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**53:
            raise ValueError(f"{name} must be a whole number")
    if model.jitter_retries > MAX_RETRIES:
        raise ValueError("jitter_retries is out of bounds")
    if not isinstance(model.preset, str) or not math.isfinite(model.seconds):
        raise ValueError("preset must be text and seconds a number")
    if not all(isinstance(count, int) for count in model.jitter_grew):
        raise ValueError("jitter_grew must be whole numbers")
    if not all(isinstance(kind, str) for kind in model.feature_types):
        raise ValueError("feature_types must be names")
    if not all(isinstance(i, int) and isinstance(fit, float | int) for i, fit in model.trace):
        raise ValueError("trace must be pairs of numbers")
    if not isinstance(model.posterior, posteriors.Posterior):
        raise ValueError("it holds no posterior")
    for leaf in jax.tree.leaves(model.posterior):
        if leaf.size == 0 or not bool(jnp.all(jnp.isfinite(leaf))):
            raise ValueError("it holds arrays that are empty or not finite")
    if min(model.posterior.draws) < 1:
        raise ValueError("it holds no samples")
    inputs, targets = len(model.feature_names), len(model.target_names)
    for scaling, count in ((model.x_scaling, inputs), (model.y_scaling, targets)):
        if scaling.offset.shape != (count,) or scaling.scale.shape != (count,):
            raise ValueError("the scaling does not fit the columns")
        if not np.all(np.isfinite(np.stack(scaling))) or not np.all(scaling.scale > 0.0):
            raise ValueError("the scaling must be finite and positive")
    if model.single_target and targets != 1:
        raise ValueError("one target cannot have several names")
    scores = model.conformity
    if scores is not None and (scores.ndim != 2 or scores.shape[1] != targets or not np.all(np.isfinite(scores))):
        raise ValueError("the scores of calibration rows do not fit the target")
    posterior = model.posterior
    if model.classes is not None:
        _require_classes(model.classes)
    dtype = jax.tree.leaves(posterior)[0].dtype
    rows = jax.ShapeDtypeStruct((2, inputs), dtype)
    means, variances = jax.eval_shape(lambda p, X: p.functions(p.prepare(), X), posterior, rows)
    samples = math.prod(posterior.draws)
    likelihood = posterior.likelihoods()[0]
    if type(likelihood) is not LIKELIHOODS[str(model.settings.likelihood)]:
        raise ValueError("the likelihood is not the one of the settings")
    if isinstance(likelihood, likelihoods.RobustMax) and not 0.0 < likelihood.epsilon < 1.0:
        raise ValueError("epsilon must lie between 0 and 1")
    latents = likelihood.num_latents(targets)
    if means.shape != (samples, 2, latents) or variances.shape not in ((samples, 2, 1), (samples, 2, latents)):
        raise ValueError(f"functions would have shape {means.shape}")
    described = jax.eval_shape(lambda p, f: p.described(f), posterior, (means, variances))
    wanted = (samples, 2, len(model.classes)) if model.classes is not None else (samples, 2, targets)
    if jax.tree.leaves(described)[0].shape[:3] != wanted or isinstance(described, likelihoods.Probabilities) != (
        model.classes is not None
    ):
        raise ValueError("predictions would not have the shape of the target")


def _require_classes(classes: Any) -> None:
    if not isinstance(classes, tuple):
        raise ValueError("classes must be a list")
    as_text = all(isinstance(label, str) for label in classes)
    if not as_text and not all(isinstance(x, bool | int | float) and abs(x) < LARGEST_LABEL for x in classes):
        raise ValueError("classes must be all text, or all numbers")
    if len(classes) < 2 or len(np.unique(np.asarray(classes))) < len(classes):
        raise ValueError("classes must be two or more different labels")


def _posterior_of_format_1(model: dict[str, Any]) -> dict[str, Any]:
    """Format 1 knew one kind of posterior, and kept its parts apart."""
    depth = len(model["layers"])
    return {
        "class": posteriors.SharedTheta.__name__,
        "model": model,
        "samples": [{"tensor": f"samples.{i}"} for i in range(depth)],
        "noise": [{"tensor": f"noise.{i}"} for i in range(depth - 1)],
    }


def _describe(value: Any, name: str, tensors: Tensors) -> Any:
    """A JSON description of a module; its arrays go to ``tensors`` under dotted names."""
    if isinstance(value, eqx.Module):
        parts = {
            field.name: _describe(getattr(value, field.name), f"{name}.{field.name}", tensors)
            for field in dataclasses.fields(value)
        }
        return {"class": type(value).__name__, **parts}
    if isinstance(value, tuple):
        return [_describe(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
    if value is None or isinstance(value, int | float):
        return value
    tensors[name] = np.asarray(value)
    return {"tensor": name}


def _rebuild(described: Any, tensors: Tensors) -> Any:
    if isinstance(described, list):
        return tuple(_rebuild(item, tensors) for item in described)
    if not isinstance(described, dict):
        if not (described is None or isinstance(described, int | float)) or isinstance(described, bool):
            raise ValueError(f"{described!r} is no part of a model")
        if described is not None and not (0 <= described < LARGEST_NUMBER):
            raise ValueError(f"{described!r} is out of bounds")
        return described
    if "tensor" in described:
        array = tensors.pop(described["tensor"])  # once each: a small file cannot ask for much
        if max(array.shape, default=0) > LARGEST_SIDE and array.ndim > 1 and described["tensor"].endswith("inputs"):
            raise ValueError(f"{len(array)} inducing inputs are too many")
        return jnp.asarray(array)
    cls = CLASSES[described["class"]]
    return cls(**{name: _rebuild(part, tensors) for name, part in described.items() if name != "class"})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
