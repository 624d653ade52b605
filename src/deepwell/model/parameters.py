"""An array of a model says what it is where it is declared: a parameter with its prior, or a constant.

    class Wobbly(Kernel):
        log_period: Annotated[Float[Array, ""], LogNormal(1.0, 0.5)]
        phase: Annotated[Float[Array, ""], CONSTANT]

Inference moves parameters and never constants. An array that declares neither is refused.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from deepwell.errors import InputError

CONSTANT: Final = "constant"
"""Annotates an array that inference never moves."""
Prior = Callable[[Array, Array, Any], Float[Array, ""]]
"""(value, value before learning, ``Priors``) -> log density of the value, less its constant."""


class Declared(NamedTuple):
    """An array of a model: its dotted name, its value, and its prior (None: it is a constant)."""

    name: str
    value: Array
    prior: Prior | None


@functools.cache
def _annotations(cls: type) -> dict[str, Any]:
    """What fields are annotated with: a prior or ``CONSTANT``."""
    annotations = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        for item in getattr(hint, "__metadata__", ()):
            if item is CONSTANT or callable(item):
                annotations[name] = item
    return annotations


def declared_arrays(tree: PyTree, name: str = "") -> Iterator[Declared]:
    """All arrays of a model, or of any tuple of parts of one, in the order of ``jax.tree.leaves``."""
    if isinstance(tree, tuple):
        for i, item in enumerate(tree):
            yield from declared_arrays(item, f"{name}.{i}" if name else str(i))
    elif isinstance(tree, eqx.Module):
        annotations = _annotations(type(tree))
        for field in dataclasses.fields(tree):
            value, path = getattr(tree, field.name), f"{name}.{field.name}" if name else field.name
            if field.name in annotations:
                item = annotations[field.name]
                for way, leaf in jax.tree_util.tree_leaves_with_path(value):
                    inner = jax.tree_util.keystr(way, simple=True, separator=".")
                    yield Declared(f"{path}.{inner}" if inner else path, leaf, None if item is CONSTANT else item)
            elif isinstance(value, jax.Array | np.ndarray):
                raise InputError(
                    f"{type(tree).__name__}.{field.name} is an array without a prior: annotate it as "
                    f"Annotated[Array, prior], or as Annotated[Array, CONSTANT] if inference must not move it"
                )
            elif not field.metadata.get("static", False):
                yield from declared_arrays(value, path)
