"""What each posterior sample says of each row, computed in blocks of rows."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from deepwell.inference.posterior import Functions, Posterior
from deepwell.model.likelihoods import Marginal
from deepwell.numerics.jit import quick_jit

ROWS_PER_BLOCK = 512


@quick_jit
def _prepare(posterior: Posterior) -> PyTree:
    return posterior.prepare()


@quick_jit
def _functions(posterior: Posterior, prepared: PyTree, X: Float[Array, "n d"]) -> Functions:
    return posterior.functions(prepared, X)


@quick_jit
def _marginals(posterior: Posterior, functions: Functions) -> Marginal:
    return posterior.marginals(functions)


def functions(posterior: Posterior, X: np.ndarray) -> Iterator[Functions]:
    """Means and variances of the latent functions, block of rows by block, for standardised X."""
    for values, count in _blocks(posterior, X):
        yield _first_rows(values, count)


@quick_jit
def _log_densities(posterior: Posterior, functions: Functions, y: Float[Array, "n p"]) -> Float[Array, "s n"]:
    return posterior.log_densities(functions, y)


def log_densities(posterior: Posterior, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log p(y | x) under every sample, (samples, rows), for standardised X and y."""
    starts = range(0, len(X), ROWS_PER_BLOCK)
    parts = []
    for start, (values, count) in zip(starts, _blocks(posterior, X), strict=True):
        padded = np.pad(y[start : start + ROWS_PER_BLOCK], ((0, ROWS_PER_BLOCK - count), (0, 0)))
        parts.append(_first_rows(_log_densities(posterior, values, jnp.asarray(padded, float)), count))
    return np.concatenate(parts, axis=1)


def marginals(posterior: Posterior, X: np.ndarray) -> Iterator[Marginal]:
    """p(y | x) under every sample, block of rows by block, for standardised X."""
    for values, count in _blocks(posterior, X):
        yield _first_rows(_marginals(posterior, values), count)


def _blocks(posterior: Posterior, X: np.ndarray) -> Iterator[tuple[Functions, int]]:
    """Every block has the same shape, the last one padded, so that no row's result depends on the others."""
    prepared = _prepare(posterior)
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        padded = np.pad(block, ((0, ROWS_PER_BLOCK - len(block)), (0, 0)))
        yield _functions(posterior, prepared, jnp.asarray(padded, float)), len(block)


def _first_rows(values: Any, count: int) -> Any:
    """Without the padding: rows are axis 1."""
    return jax.tree.map(lambda x: np.asarray(x)[:, :count], values)
