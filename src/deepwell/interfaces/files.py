"""Model files: one safetensors file, with one JSON string under the metadata key ``deepwell``.

Nothing in a file is executed: it names classes from a fixed list, and holds numbers and plain metadata. A
digest over tensors and metadata guards against damage.
"""

import dataclasses
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from deepwell.data.scaling import Scaling
from deepwell.inference import posteriors
from deepwell.interfaces.settings import make_settings
from deepwell.model import kernels, likelihoods, means
from deepwell.model.bnn import Net
from deepwell.model.deep_gp import DeepGP
from deepwell.model.gaussian_outputs import GaussianOutputs
from deepwell.model.layers import Layer

if TYPE_CHECKING:
    from deepwell.interfaces.fitted import FittedModel

FORMAT = 2
KEY = "deepwell"
_KNOWN: tuple[type[eqx.Module], ...] = (
    posteriors.SharedTheta, posteriors.OwnTheta, posteriors.Variational, posteriors.Networks, GaussianOutputs, Net,
    DeepGP, Layer, likelihoods.Gaussian, means.Zero, means.Identity, means.PaddedIdentity, means.PrincipalProjection,
    kernels.Linear, kernels.Sum, kernels.Product, *kernels.STATIONARY.values(),
)  # fmt: skip
CLASSES = {cls.__name__: cls for cls in _KNOWN}
PLAIN = (
    "feature_names", "named", "target_names", "single_target", "preset", "seed", "num_rows", "trace", "refused_moves",
    "refused_updates", "jitter_retries", "seconds",
)  # fmt: skip

Tensors = dict[str, np.ndarray]


class DeepwellFileError(ValueError):
    """A model file that cannot be read or written."""


def save(fitted: "FittedModel", path: str | Path) -> None:
    """Write atomically: a failure leaves whatever was at ``path`` as it was."""
    from safetensors.numpy import save as to_bytes

    from deepwell import __version__

    path = Path(path)
    tensors: Tensors = {}
    described = {
        "format": FORMAT,
        "versions": {"deepwell": __version__, "jax": _jax_version()},
        "posterior": _describe(fitted.posterior, "posterior", tensors),
        "settings": dataclasses.asdict(fitted.settings),
        **{name: getattr(fitted, name) for name in PLAIN},
    }
    for name in ("x_scaling", "y_scaling"):
        for part, array in getattr(fitted, name)._asdict().items():
            tensors[f"{name}.{part}"] = np.asarray(array)
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    described["digest"] = _digest(described, tensors)
    write_atomically(path, to_bytes(tensors, {KEY: json.dumps(described)}))


def load(path: str | Path) -> "FittedModel":
    """Read a model file; predictions equal those of the model that was saved."""
    from safetensors import SafetensorError, safe_open

    from deepwell.interfaces.fitted import FittedModel

    path = Path(path)
    if not path.is_file():
        raise DeepwellFileError(f"no such model file: {path}")
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        described = json.loads(metadata[KEY])
        if described["format"] not in (1, FORMAT):
            raise DeepwellFileError(
                f"{path} has format {described['format']!r}, and this version of deepwell reads 1 and {FORMAT}"
            )
        digest = described.pop("digest")
        if digest != _digest(described, tensors):
            raise DeepwellFileError(f"{path} is damaged: its digest does not match its contents")
        if described["format"] == 1:
            described["posterior"] = _posterior_of_format_1(described["model"])
        posterior = _rebuild(described["posterior"], tensors)
        if not isinstance(posterior, posteriors.Posterior):
            raise DeepwellFileError(f"{path} holds no posterior")
        x_scaling, y_scaling = (
            Scaling(*(tensors[f"{name}.{part}"] for part in Scaling._fields)) for name in ("x_scaling", "y_scaling")
        )
        plain = {name: _tuples(described[name]) for name in PLAIN}
        settings = make_settings(**{name: _tuples(value) for name, value in described["settings"].items()})
        return FittedModel(posterior=posterior, settings=settings, x_scaling=x_scaling, y_scaling=y_scaling, **plain)
    except DeepwellFileError:
        raise
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DeepwellFileError(f"{path} is not a deepwell model file: {error}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file beside ``path``, flush it to disk, and rename it."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise DeepwellFileError(f"cannot write {path}: {error.strerror}") from error


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
        return described
    if "tensor" in described:
        return jnp.asarray(tensors[described["tensor"]])
    cls = CLASSES[described["class"]]
    return cls(**{name: _rebuild(part, tensors) for name, part in described.items() if name != "class"})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _digest(described: dict[str, Any], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _jax_version() -> str:
    import jax

    return jax.__version__
