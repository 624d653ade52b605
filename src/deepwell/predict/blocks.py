"""The posterior samples' answers at rows of X, computed in blocks of rows.

All blocks have one shape, the last one padded, so that the result of a row does not depend on other rows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.inference.posterior import Functions, Posterior
from deepwell.model.likelihoods import Marginal
from deepwell.numerics.jit import quick_jit

ROWS_PER_BLOCK = 512


def functions(posterior: Posterior, X: np.ndarray) -> Iterator[Functions]:
    """Means and variances of the latent functions, for standardised X."""
    for block, rows in _blocks(posterior, X):
        yield _unpadded(block, rows)


def marginals(posterior: Posterior, X: np.ndarray) -> Iterator[Marginal]:
    """p(y | x) under every sample, for standardised X."""
    for block, rows in _blocks(posterior, X):
        yield _unpadded(_compiled(type(posterior).marginals, posterior, block), rows)


def log_densities(posterior: Posterior, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log p(y | x) under every sample, (samples, rows), for standardised X and y."""
    parts = [
        _unpadded(_compiled(type(posterior).log_densities, posterior, block, _padded(y[rows])), rows)
        for block, rows in _blocks(posterior, X)
    ]
    return np.concatenate(parts, axis=1)


@partial(quick_jit, static_argnums=(0,))
def _compiled(method: Callable[..., Any], *arguments: Any) -> Any:
    return method(*arguments)


def _blocks(posterior: Posterior, X: np.ndarray) -> Iterator[tuple[Functions, slice]]:
    """The latent functions at each block of rows, padded, and which rows those are."""
    prepared = _compiled(type(posterior).prepare, posterior)
    for start in range(0, len(X), ROWS_PER_BLOCK):
        rows = slice(start, min(start + ROWS_PER_BLOCK, len(X)))
        yield _compiled(type(posterior).functions, posterior, prepared, _padded(X[rows])), rows


def _padded(values: np.ndarray) -> jax.Array:
    return jnp.asarray(np.pad(values, ((0, ROWS_PER_BLOCK - len(values)), (0, 0))), float)


def _unpadded(values: Any, rows: slice) -> Any:
    """Rows are axis 1; a parameter that all rows share has length 1 there."""
    return jax.tree.map(lambda x: np.asarray(x)[:, : rows.stop - rows.start], values)
