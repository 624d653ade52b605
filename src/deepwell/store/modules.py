"""Equinox modules as JSON and tensors, and back.

A module is encoded as ``{"class": name, field: value, ...}``: numbers, text and tuples are JSON, arrays go to a
dictionary of tensors. deepwell's classes have plain names (``BUILT_IN``); any other class is named by its import path,
``package.module:Class``. Decoding neither imports a module nor calls a constructor.
"""

import dataclasses
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deepwell.errors import InputError
from deepwell.inference import deep_gp_posteriors, net_posterior, posterior
from deepwell.model import deep_gp, gaussian_outputs, kernels, layers, likelihoods, local, means, net, random_features
from deepwell.store.tensor_file import DeepwellFileError, Tensors, digest, is_storable

LARGEST_NUMBER = 2**31
"""Numbers in the fields of deepwell's classes are below this, and not negative."""
LARGEST_SIDE = 2**14
"""Inducing inputs of a layer that are accepted: their kernel matrix has this many rows and columns."""
LONGEST_PATH = 500
"""Characters of an import path."""

BUILT_IN: dict[str, type[eqx.Module]] = {
    "SharedTheta": deep_gp_posteriors.SharedTheta,
    "OwnTheta": deep_gp_posteriors.OwnTheta,
    "Variational": deep_gp_posteriors.Variational,
    "Networks": net_posterior.Networks,
    "GaussianOutputs": gaussian_outputs.GaussianOutputs,
    "Net": net.Net,
    "DeepGP": deep_gp.DeepGP,
    "Layer": layers.InducingLayer,
    "RandomFeatureLayer": random_features.RandomFeatureLayer,
    "LocalKernel": local.LocalKernel,
    "Tail": local.Tail,
    "Gaussian": likelihoods.Gaussian,
    "StudentT": likelihoods.StudentT,
    "HeteroscedasticGaussian": likelihoods.HeteroscedasticGaussian,
    "Poisson": likelihoods.Poisson,
    "RobustMax": likelihoods.RobustMax,
    "Softmax": likelihoods.Softmax,
    "ProbitBernoulli": likelihoods.ProbitBernoulli,
    "LogitBernoulli": likelihoods.LogitBernoulli,
    "Zero": means.Zero,
    "Identity": means.Identity,
    "PaddedIdentity": means.PaddedIdentity,
    "PrincipalProjection": means.PrincipalProjection,
    "SquaredExponential": kernels.SquaredExponential,
    "Matern12": kernels.Matern12,
    "Matern32": kernels.Matern32,
    "Matern52": kernels.Matern52,
    "Linear": kernels.Linear,
    "Constant": kernels.Constant,
    "Sum": kernels.Sum,
    "Product": kernels.Product,
}
"""The names of deepwell's classes in files. A class that is renamed keeps its name here."""

GivenClasses = dict[str, type]

BASES = (kernels.Kernel, means.Mean, likelihoods.Likelihood, layers.Layer, posterior.Posterior)
"""What a class from outside the package must derive from."""


class UnknownClass(LookupError):  # noqa: N818
    """A class from outside the package that is neither imported nor given."""

    def __init__(self, path: str) -> None:
        module, _, qualname = path.partition(":")
        name = qualname.rpartition(".")[2]
        importable = module != "__main__" and "<locals>" not in qualname
        how = f"import {module} before loading, or pass classes=[{name}]" if importable else f"pass classes=[{name}]"
        super().__init__(f"{module}.{qualname}: {how}")


def encode(value: Any, name: str, tensors: Tensors) -> Any:
    """The JSON of a module, number, text or tuple; its arrays go to ``tensors`` under dotted names."""
    if isinstance(value, eqx.Module):
        parts = {
            field.name: _encode_field(value, field, f"{name}.{field.name}", tensors)
            for field in dataclasses.fields(value)
        }
        return {"class": _name_in_file(type(value)), **parts}
    if type(value) is tuple:
        return [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
    if isinstance(value, jax.Array | np.ndarray | np.generic) and is_storable(value.dtype):
        tensors[name] = np.asarray(value)
        return {"tensor": name}
    return _encode_plain(value, name)


def _encode_field(module: eqx.Module, field: dataclasses.Field[Any], name: str, tensors: Tensors) -> Any:
    value = getattr(module, field.name)
    return _encode_plain(value, name) if _is_static(field) else encode(value, name, tensors)


def _encode_plain(value: Any, name: str) -> Any:
    """A number, text, None, or a tuple of these."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is tuple:
        return [_encode_plain(item, f"{name}.{i}") for i, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise DeepwellFileError(
        f"{name} cannot be saved: it is a {type(value).__name__}. A model file holds modules, arrays of real numbers, "
        "numbers, text, None and tuples of these; a static field holds no modules and no arrays"
    )


def decode(encoded: Any, tensors: Tensors, given: GivenClasses) -> Any:
    """The value that ``encode`` was given; raises if there can be none.

    A class from outside the package must be among those given or in a module that is imported already. Each tensor is
    removed from ``tensors`` when it is used, so what is built is never larger than the file.
    """
    if isinstance(encoded, list):
        return tuple(decode(item, tensors, given) for item in encoded)
    if not isinstance(encoded, dict):
        return encoded
    if "class" in encoded:
        return _decode_module(encoded, tensors, given)
    return jnp.asarray(tensors.pop(encoded["tensor"]))


def _decode_module(encoded: dict[str, Any], tensors: Tensors, given: GivenClasses) -> eqx.Module:
    cls = _class_named(encoded["class"], given)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    values = {name: decode(part, tensors, given) for name, part in encoded.items() if name != "class"}
    for name, field in fields.items():
        if name not in values and field.default is not dataclasses.MISSING:  # a field that is newer than the file
            values[name] = field.default
    if values.keys() != fields.keys():
        raise ValueError(f"{encoded['class']} has the fields {', '.join(fields)}, the file {', '.join(values)}")
    module: eqx.Module = object.__new__(
        cls
    )  # as equinox unflattens: a constructor may take other arguments than the fields
    for name, value in values.items():
        if _is_static(fields[name]):
            _require_plain(value)
        if encoded["class"] in BUILT_IN:
            _require_bounded(value)
        if name.endswith("inputs") and isinstance(value, jax.Array) and value.ndim > 1 and len(value) > LARGEST_SIDE:
            raise ValueError(f"{len(value)} inducing inputs are too many")
        object.__setattr__(module, name, value)
    return module


def _require_plain(value: Any) -> None:
    if isinstance(value, tuple):
        for item in value:
            _require_plain(item)
    elif not (value is None or isinstance(value, str | bool | int | float)):
        raise ValueError("a static field holds a module or an array")


def _require_bounded(value: Any) -> None:
    """No text, no truth value, no negative or huge number: no field of deepwell's classes holds one."""
    if isinstance(value, tuple):
        for item in value:
            _require_bounded(item)
    elif isinstance(value, str | bool) or (isinstance(value, int | float) and not 0 <= value < LARGEST_NUMBER):
        raise ValueError(f"{value!r:.50} is out of bounds")


def _is_static(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get("static", False))


def import_path(cls: type) -> str:
    """``package.module:Class``."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _name_in_file(cls: type) -> str:
    names = [name for name, known in BUILT_IN.items() if known is cls]
    if not names and not issubclass(cls, BASES):
        raise DeepwellFileError(f"a {cls.__qualname__} cannot be saved: it derives from none of {_base_names()}")
    return names[0] if names else import_path(cls)


def given_classes(classes: Iterable[type]) -> GivenClasses:
    """Classes by their names and import paths, so that a class can be given that has moved since."""
    classes = tuple(classes)
    for cls in classes:
        if not isinstance(cls, type) or not issubclass(cls, BASES):
            raise InputError(f"classes: {cls!r} is not a class that derives from one of {_base_names()}")
    return {cls.__name__: cls for cls in classes} | {import_path(cls): cls for cls in classes}


def _class_named(name: str, given: GivenClasses) -> type[eqx.Module]:
    """The class of this name in a file. A file never causes an import."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    module, _, qualname = name.partition(":")
    steps = qualname.split(".")
    if len(name) > LONGEST_PATH or not all(s.isidentifier() or s == "<locals>" for s in [*module.split("."), *steps]):
        raise ValueError(f"{name!r:.50} is no class of a model")
    candidates = given.get(name), _imported(module, steps), given.get(steps[-1])
    cls = next((candidate for candidate in candidates if candidate is not None), None)
    if cls is None:
        raise UnknownClass(name)
    if not isinstance(cls, type) or not issubclass(cls, BASES) or cls in BUILT_IN.values():
        raise ValueError(f"{name} is no class of a model")
    return cls


def _imported(module: str, steps: list[str]) -> Any:
    """What a module that is imported already holds under this name, or None.

    Only dictionaries are read, because the ``__getattr__`` of a module, or a lazy module, may import others.
    """
    scope: Any = sys.modules.get(module)
    for step in steps:
        if not isinstance(scope, ModuleType | type):
            return None
        scope = object.__getattribute__(scope, "__dict__").get(step)
    return scope


def _base_names() -> str:
    return ", ".join(base.__name__ for base in BASES)


def fingerprint(value: Any) -> Any:
    """JSON that tells values apart: that of ``encode``, arrays as digests."""
    if type(value) is tuple:
        return [fingerprint(item) for item in value]
    tensors: Tensors = {}
    encoded = encode(value, "value", tensors)
    return {**encoded, "digest": digest(encoded, tensors)} if isinstance(value, eqx.Module) else encoded
