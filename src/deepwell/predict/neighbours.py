"""Exact nearest rows by brute force: squared distances as matrix products, block of queries by block."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from deepwell.numerics.jit import quick_jit
from deepwell.numerics.linalg import matmul

QUERIES_AT_ONCE, DISTANCES_AT_ONCE = 512, 2**18
"""Queries of one call, and how many distances are in memory at a time: 1 MiB of float32, which a cache holds."""
NOBODY = -1


def nearest(
    rows: Float[np.ndarray, "n d"],
    queries: Float[np.ndarray, "m d"],
    count: int,
    own: Int[np.ndarray, " m"] | None = None,
) -> Int[np.ndarray, "m k"]:
    """Numbers of the ``count`` rows nearest to each query, nearest first.

    ``own`` is the number of the row that each query is, which is not its own neighbour. What is nearest to a query does
    not depend on the others: every block has the same shape.
    """
    others = len(rows) - (own is not None)
    if not 0 < count <= others:
        raise ValueError(f"count={count} neighbours are wanted of {others} rows")
    own = np.full(len(queries), NOBODY) if own is None else own
    group = math.isqrt(len(rows) // count)
    missing = -len(rows) % group
    centre = np.mean(rows, 0)
    table = jnp.asarray(np.pad(rows - centre, ((0, missing), (0, 0))), jnp.float32)
    squares = jnp.asarray(np.pad(np.sum((rows - centre) ** 2, 1), (0, missing), constant_values=np.inf), jnp.float32)
    blocks = []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        block, whose = queries[start : start + QUERIES_AT_ONCE] - centre, own[start : start + QUERIES_AT_ONCE]
        padding = QUERIES_AT_ONCE - len(block)
        block, whose = np.pad(block, ((0, padding), (0, 0))), np.pad(whose, (0, padding))
        indices = _nearest_of_block(table, squares, jnp.asarray(block, jnp.float32), jnp.asarray(whose), count, group)
        blocks.append(np.asarray(indices)[: QUERIES_AT_ONCE - padding])
    return np.concatenate(blocks) if blocks else np.zeros((0, count), np.int32)


def _nearest_of_block(
    rows: Float[Array, "n d"],
    squares: Float[Array, " n"],
    queries: Float[Array, "m d"],
    own: Int[Array, " m"],
    k: int,
    size: int,
) -> Int[Array, "m k"]:
    """By |z|^2 - 2 x.z, which is the squared distance less what is the same for all rows.

    The k nearest rows are in the k groups of rows whose least distances are least, so that about 2 sqrt(n k) numbers
    are sorted instead of n. Every ``groups``-th row is of one group.
    """
    groups = len(rows) // size
    fitting = max(1, min(len(queries), DISTANCES_AT_ONCE // len(rows)))
    few = 1 << (fitting.bit_length() - 1)  # a power of two divides the block: all batches have one shape

    def one(query: tuple[Float[Array, " d"], Int[Array, ""]]) -> Int[Array, " k"]:
        x, own = query
        distances = squares - 2.0 * matmul(rows, x)
        distances = jnp.where(jnp.arange(len(rows)) == own, jnp.inf, distances).reshape(size, groups)
        best = lax.top_k(-jnp.min(distances, 0), k)[1]
        chosen = lax.top_k(-distances[:, best].reshape(-1), k)[1]
        return chosen // k * groups + best[chosen % k]

    return lax.map(one, (queries, own), batch_size=few)


_nearest_of_block = quick_jit(_nearest_of_block, static_argnums=(4, 5), long_run=True)
