"""Training rows on the device, and minibatches of them without host work."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

SMALL = 512


class Rows(NamedTuple):
    """Standardised inputs and targets; only the first ``num_data`` rows are data. Where there are minibatches, the data
    is followed by its own beginning, so that every cyclic run of rows is one slice; the rest is padding."""

    X: Float[Array, "n d"]
    y: Float[Array, "n p"]
    num_data: Int[Array, ""]


def padded_length(rows: int) -> int:
    """Rows after padding: small tables share a few shapes, so that fits of one size compile once."""
    return rows if rows > SMALL else max(32, 1 << (rows - 1).bit_length())


def to_rows(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, batch_size: int | None) -> Rows:
    """Shuffle once (minibatches are contiguous runs of the shuffled rows), repeat the beginning, pad, move to the
    device."""
    order, length = rng.permutation(len(X)), padded_length(len(X))
    if batch_size is not None:
        order, length = np.concatenate([order, order[:batch_size]]), length + batch_size
    padding = ((0, length - len(order)), (0, 0))
    return Rows(
        jnp.asarray(np.pad(X[order], padding), float),
        jnp.asarray(np.pad(y[order], padding), float),
        jnp.asarray(len(X), jnp.int32),
    )


def minibatch(key: PRNGKeyArray, rows: PyTree, num_data: Int[Array, ""], size: int | None) -> tuple[PyTree, Array]:
    """A run of ``size`` rows of each array at a random start, cyclic over the first ``num_data``, and weights.

    Every row is equally likely, so the mean over a minibatch is unbiased. With ``size=None`` all rows
    come, weighted 1 if they are data and 0 if not.
    """
    example = jax.tree.leaves(rows)[0]
    if size is None:
        return rows, (jnp.arange(example.shape[0], dtype=num_data.dtype) < num_data).astype(example.dtype)
    start = (jax.random.bits(key, dtype=jnp.uint32) % num_data.astype(jnp.uint32)).astype(jnp.int32)
    return _run(rows, start, size), jnp.ones((size,), example.dtype)


def run_of_rows(rows: PyTree, num_data: Int[Array, ""], start: Int[Array, ""], size: int) -> tuple[PyTree, Array]:
    """``size`` rows of each array from ``start`` on, weighted 1, or 0 beyond the data."""
    within = start + jnp.arange(size, dtype=num_data.dtype) < num_data
    return _run(rows, start, size), within.astype(jax.tree.leaves(rows)[0].dtype)


def _run(rows: PyTree, start: Int[Array, ""], size: int) -> PyTree:
    return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, size), rows)
