"""Finite or not, and one or the other: functions of whole pytrees."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every number of a pytree is finite. Integers always are.

    It tests the sum of all leaves, which compiles faster than a test of each number.
    """
    return jnp.isfinite(sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)))


def select(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """``new`` where ``condition`` holds, else ``old``, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def keep_finite(new: Any, old: Any, *also: PyTree) -> tuple[Any, Int[Array, ""]]:
    """``new`` if all its numbers and those of ``also`` are finite, else ``old``; and 1 if it was refused, else 0."""
    finite = all_finite((new, *also))
    return select(finite, new, old), (~finite).astype(jnp.int32)
