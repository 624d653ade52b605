"""Training rows on the device, and minibatches of them without host work."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

SMALL = 512


class Rows(NamedTuple):
    """Standardised inputs and targets; only the first ``num_data`` rows are data, the rest is padding."""

    X: Float[Array, "n d"]
    y: Float[Array, "n p"]
    num_data: Int[Array, ""]


def padded_length(rows: int) -> int:
    """Rows after padding: small tables share a few shapes, so that fits of one size compile once."""
    return rows if rows > SMALL else max(32, 1 << (rows - 1).bit_length())


def to_rows(rng: np.random.Generator, X: np.ndarray, y: np.ndarray) -> Rows:
    """Shuffle once (minibatches are contiguous runs of the shuffled rows), pad, move to the device."""
    order = rng.permutation(len(X))
    padding = ((0, padded_length(len(X)) - len(X)), (0, 0))
    return Rows(
        jnp.asarray(np.pad(X[order], padding), float),
        jnp.asarray(np.pad(y[order], padding), float),
        jnp.asarray(len(X), jnp.int32),
    )


def minibatches(
    rows: PyTree, num_data: Int[Array, ""], size: int | None
) -> Callable[[PRNGKeyArray], tuple[PyTree, Array]]:
    """A function of a key: a run of ``size`` rows of each array at a random start, cyclic over the first ``num_data``,
    and weights.

    Every row is equally likely, so the mean over a minibatch is unbiased. The arrays are followed by their own
    beginning once, so that every run is one slice. With ``size=None`` all rows come, weighted 1 if they are data and 0
    if padding.
    """
    example = jax.tree.leaves(rows)[0]
    length, dtype = example.shape[0], example.dtype
    if size is None:
        weight = (jnp.arange(length, dtype=num_data.dtype) < num_data).astype(dtype)
        return lambda key: (rows, weight)
    cycle = jnp.arange(length + size, dtype=num_data.dtype) % num_data
    cyclic = jax.tree.map(lambda x: jnp.take(x, cycle, axis=0), rows)

    def draw(key: PRNGKeyArray) -> tuple[PyTree, Array]:
        start = (jax.random.bits(key, dtype=jnp.uint32) % num_data.astype(jnp.uint32)).astype(jnp.int32)
        run = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, size), cyclic)
        return run, jnp.ones((size,), dtype)

    return draw
