"""Posterior samples of a deep GP, and the components of its predictions."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from deepwell.inference.compiling import quick_jit
from deepwell.model.deep_gp import DeepGP, Outputs, propagate
from deepwell.model.linalg import InverseFactor

ROWS_PER_BLOCK = 512
SAMPLES_AT_ONCE = 50


class Posterior(NamedTuple):
    """theta, samples of v, and the hidden layers' noise of each sample; leading axes (chain, draw).

    The noise is drawn once per sample and layer, never per row: a sample is one function, and the
    prediction for a row depends on that row alone.
    """

    model: DeepGP
    samples: Outputs
    noise: Outputs

    @property
    def num_chains(self) -> int:
        return self.samples[0].shape[0]

    @property
    def num_draws(self) -> int:
        return self.samples[0].shape[1]


@quick_jit
def with_noise(key: PRNGKeyArray, model: DeepGP, samples: Outputs) -> Posterior:
    """Give every sample the noise of its hidden layers."""
    return Posterior(model, samples, model.hidden_noise(key, samples[0].shape[:2]))


@quick_jit
def _factors(model: DeepGP) -> tuple[InverseFactor, ...]:
    return model.factors()


@quick_jit
def _components(
    posterior: Posterior, factors: tuple[InverseFactor, ...], X: Float[Array, "n d"]
) -> tuple[Float[Array, "s n p"], Float[Array, "s n 1"]]:
    """Mean and variance of f_L at the rows of X under each sample; the first projection serves all."""
    model = posterior.model
    first = model.layers[0].project(factors[0], X)

    def one(sample: tuple[Outputs, Outputs]) -> tuple[Array, Array]:
        return propagate(model, factors, sample[0], first, sample[1])

    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (posterior.samples, posterior.noise))
    return jax.lax.map(one, flat, batch_size=SAMPLES_AT_ONCE)


def components(posterior: Posterior, X: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Means and variances of the noise-free function, block of rows by block, for standardised X.

    Every block has the same shape, the last one padded, so that no row's result depends on the others.
    """
    factors = _factors(posterior.model)
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        padded = np.pad(block, ((0, ROWS_PER_BLOCK - len(block)), (0, 0)))
        means, variances = _components(posterior, factors, jnp.asarray(padded, float))
        yield np.asarray(means)[:, : len(block)], np.asarray(variances)[:, : len(block)]
