"""An array of a model says what it is where it is declared: a parameter with its prior, or a constant.

    class Wobbly(Kernel):
        log_period: Float[Array, ""] = parameter(LogNormal(1.0, 0.5))

Inference moves parameters and never constants. An array that declares neither is refused.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from deepwell.errors import InputError

KEY = "deepwell"
Prior = Callable[[Array, Array, Any], Float[Array, ""]]
"""(value, value before learning, ``Priors``) -> log density of the value, less its constant."""


class Declared(NamedTuple):
    """An array of a model: its dotted name, its value, and its prior (None: it is a constant)."""

    name: str
    value: Array
    prior: Prior | None


def parameter(prior: Prior, **options: Any) -> Any:
    """A field that holds a parameter with this prior; ``options`` are those of ``equinox.field``."""
    return eqx.field(metadata={KEY: prior}, **options)


def constant() -> Any:
    """A field that holds an array which inference never moves."""
    return eqx.field(metadata={KEY: None})


def declared_arrays(tree: PyTree, name: str = "") -> Iterator[Declared]:
    """All arrays of a model, or of any tuple of parts of one, in the order of ``jax.tree.leaves``."""
    if isinstance(tree, tuple):
        for i, item in enumerate(tree):
            yield from declared_arrays(item, f"{name}.{i}" if name else str(i))
    elif isinstance(tree, eqx.Module):
        for field in dataclasses.fields(tree):
            value, path = getattr(tree, field.name), f"{name}.{field.name}" if name else field.name
            if KEY in field.metadata:
                for way, leaf in jax.tree_util.tree_leaves_with_path(value):
                    inner = jax.tree_util.keystr(way, simple=True, separator=".")
                    yield Declared(f"{path}.{inner}" if inner else path, leaf, field.metadata[KEY])
            elif isinstance(value, jax.Array | np.ndarray):
                raise InputError(
                    f"{type(tree).__name__}.{field.name} is an array without a prior: declare it as "
                    f"`{field.name}: Array = parameter(prior)`, or `= constant()` if inference must not move it"
                )
            elif not field.metadata.get("static", False):
                yield from declared_arrays(value, path)
