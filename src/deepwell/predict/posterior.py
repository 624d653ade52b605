"""The components of a prediction: what each posterior sample says of each row."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from deepwell.inference.compiling import quick_jit
from deepwell.inference.posteriors import Functions, Posterior

ROWS_PER_BLOCK = 512


@quick_jit
def _prepare(posterior: Posterior) -> tuple[PyTree, Float[Array, "s p"]]:
    return posterior.prepare(), posterior.noise_variance()


@quick_jit
def _functions(posterior: Posterior, prepared: PyTree, X: Float[Array, "n d"]) -> Functions:
    return posterior.functions(prepared, X)


def components(posterior: Posterior, X: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Means and variances of the noise-free function, and noise variances, block of rows by block, for standardised X.

    Every block has the same shape, the last one padded, so that no row's result depends on the others.
    """
    prepared, noise = _prepare(posterior)
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        padded = np.pad(block, ((0, ROWS_PER_BLOCK - len(block)), (0, 0)))
        means, variances = _functions(posterior, prepared, jnp.asarray(padded, float))
        yield np.asarray(means)[:, : len(block)], np.asarray(variances)[:, : len(block)], np.asarray(noise)
