"""What did it learn? Relevance of inputs, and what the hidden layers make of them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deepwell.inference.posterior import Posterior
from deepwell.numerics.jit import quick_jit

MOST_ROWS = 128


class Relevance(NamedTuple):
    """Of each input: sqrt(mean over rows of (d f / d x)^2), through all layers, standardised x and y; its mean over the
    posterior samples and their standard deviation."""

    mean: np.ndarray
    spread: np.ndarray


def relevance(posterior: Posterior, X: np.ndarray) -> Relevance:
    """Sensitivity of f_L to every column of standardised X; of several outputs the root of the summed squares."""
    rows = X[np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int)]
    slopes = np.asarray(_slopes(posterior, jnp.asarray(rows, float)), np.float64)
    return Relevance(np.mean(slopes, 1), np.std(slopes, 1))


@quick_jit
def _slopes(posterior: Posterior, X: Float[Array, "n d"]) -> Float[Array, "d s"]:
    """One forward derivative an input gives that of all samples at once."""
    prepared = posterior.prepare()

    def along(direction: Float[Array, " d"]) -> Float[Array, " s"]:
        def means(X: Float[Array, "n d"]) -> Float[Array, "s n p"]:
            return posterior.functions(prepared, X)[0]

        _, slope = jax.jvp(means, (X,), (jnp.broadcast_to(direction, X.shape),))
        return jnp.sqrt(jnp.mean(jnp.sum(slope**2, -1), -1))

    return jax.lax.map(along, jnp.eye(X.shape[1], dtype=X.dtype))


def hidden_layers(posterior: Posterior, X: np.ndarray) -> list[np.ndarray]:
    """Mean outputs of every hidden layer at the rows of standardised X, (samples, rows, width) each."""
    inputs = jnp.asarray(X, float)
    return [np.asarray(_means(posterior.first_layers(level), inputs)) for level in range(1, posterior.depth)]


@quick_jit
def _means(posterior: Posterior, X: Float[Array, "n d"]) -> Float[Array, "s n w"]:
    return posterior.functions(posterior.prepare(), X)[0]
