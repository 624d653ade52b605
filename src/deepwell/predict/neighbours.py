"""Exact nearest rows by brute force: squared distances as matrix products, block of queries by block."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from deepwell.numerics.jit import quick_jit
from deepwell.numerics.linalg import matmul

MOST_QUERIES, DISTANCES_AT_ONCE = 512, 2**23
"""Queries of a block, fewer where there are many rows, so that a block of distances takes 32 MiB of float32."""
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
    size = int(np.clip(DISTANCES_AT_ONCE // len(rows), 1, MOST_QUERIES))
    centre = np.mean(rows, 0)
    table = jnp.asarray(rows - centre, jnp.float32)
    squares = jnp.sum(table**2, 1)
    blocks = []
    for start in range(0, len(queries), size):
        block, whose = queries[start : start + size] - centre, own[start : start + size]
        missing = size - len(block)
        block, whose = np.pad(block, ((0, missing), (0, 0))), np.pad(whose, (0, missing))
        indices = _nearest_of_block(table, squares, jnp.asarray(block, jnp.float32), jnp.asarray(whose), count)
        blocks.append(np.asarray(indices)[: size - missing])
    return np.concatenate(blocks) if blocks else np.zeros((0, count), np.int32)


def _nearest_of_block(
    rows: Float[Array, "n d"], squares: Float[Array, " n"], queries: Float[Array, "m d"], own: Int[Array, " m"], k: int
) -> Int[Array, "m k"]:
    """By |z|^2 - 2 x.z, which is the squared distance less what is the same for all rows."""
    distances = squares - 2.0 * matmul(queries, rows.T)
    is_own = own[:, None] == jnp.arange(len(rows))
    return lax.top_k(jnp.where(is_own, -jnp.inf, -distances), k)[1]


_nearest_of_block = quick_jit(_nearest_of_block, static_argnums=(4,))
