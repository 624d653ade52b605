"""A model's local part: the training rows, what the model leaves of them, and predictions given the nearest."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from deepwell.inference.posterior import Posterior
from deepwell.model.likelihoods.numbers import Normals
from deepwell.model.local import LocalKernel, Sites
from deepwell.numerics.jit import quick_jit
from deepwell.numerics.quadrature import gaussian_log_density
from deepwell.predict.blocks import ROWS_PER_BLOCK, marginals
from deepwell.predict.neighbours import nearest


def expected_noise(marginal: Normals) -> Float[Array, "_ _ p"]:
    """The variance of the noise, averaged over its nodes."""
    return jnp.sum(jnp.exp(marginal.log_weights) * marginal.noise, -1)


def sites(X: Float[Array, "n d"], mean: Float[Array, "s n p"], marginal: Normals) -> Sites:
    """Rows as the local part sees them, ``mean`` being that of each sample."""
    shape = mean.shape[1:]
    variance, noise = (jnp.mean(values, 0) for values in (marginal.variance, expected_noise(marginal)))
    features = jnp.concatenate([X, jnp.mean(mean, 0)], 1)
    return Sites(features, jnp.broadcast_to(variance, shape), jnp.broadcast_to(noise, shape))


class LocalRows(NamedTuple):
    """What a local part is rebuilt from: its kernel, the standardised training rows, and how many neighbours a row has.

    ``gain`` is what it added to the leave-one-out log density of a training row, in nats.
    """

    kernel: LocalKernel
    X: np.ndarray
    y: np.ndarray
    num_neighbours: int
    gain: float

    def part(self, posterior: Posterior) -> "LocalPart":
        """The local part of the posterior that it was learned with."""
        X, y = jnp.asarray(self.X, float), jnp.asarray(self.y, float)
        return local_part(self.kernel, joined(marginals(posterior, self.X)), X, y, self.num_neighbours)


@final
class LocalPart(eqx.Module):
    """``rows`` and ``residuals`` are those of the training rows, in standardised units."""

    kernel: LocalKernel
    rows: Sites
    residuals: Float[Array, "n s p"]
    num_neighbours: int = eqx.field(static=True)

    def marginals(self, posterior: Posterior, X: np.ndarray) -> Iterator[Normals]:
        """p(y | x) under every sample, block of rows by block, for standardised X."""
        starts = range(0, len(X), ROWS_PER_BLOCK)
        for start, marginal in zip(starts, marginals(posterior, X), strict=True):
            yield self.corrected(X[start : start + ROWS_PER_BLOCK], marginal)

    def corrected(self, X: np.ndarray, marginal: Normals) -> Normals:
        """What the samples say of standardised rows, at most ``ROWS_PER_BLOCK`` of them, given their neighbours."""
        count = len(X)
        missing = ROWS_PER_BLOCK - count
        padded, whole = jnp.asarray(np.pad(X, ((0, missing), (0, 0))), float), _padded(marginal, missing)
        at = _sites(padded, whole)
        neighbours = nearest_in(self.kernel, self.rows.features, at.features, self.num_neighbours)
        corrected = _corrected(self, at, whole, jnp.asarray(neighbours))
        return jax.tree.map(lambda x: np.asarray(x)[:, :count] if x.shape[1] > 1 else np.asarray(x), corrected)


def local_part(
    kernel: LocalKernel, marginal: Normals, X: Float[Array, "n d"], y: Float[Array, "n p"], num_neighbours: int
) -> LocalPart:
    """The local part with this kernel, from standardised training rows and what the samples say of them."""
    residuals = jnp.moveaxis(y - marginal.mean, 0, 1)
    return LocalPart(kernel, sites(X, marginal.mean, marginal), residuals, num_neighbours)


def joined(blocks: Iterable[Normals]) -> Normals:
    """Blocks joined along the rows; what is alike in all rows stays one row."""
    return jax.tree.map(lambda *x: jnp.asarray(x[0] if x[0].shape[1] == 1 else np.concatenate(x, 1)), *blocks)


def nearest_in(
    kernel: LocalKernel, rows: Array, queries: Array, count: int, own: np.ndarray | None = None
) -> Int[np.ndarray, "m k"]:
    """The nearest rows in the metric of the local kernel."""
    lengthscales = np.exp(np.asarray(kernel.log_lengthscales))
    return nearest(np.asarray(rows) / lengthscales, np.asarray(queries) / lengthscales, count, own)


def _padded(marginal: Normals, missing: int) -> Normals:
    """Noise that is alike in all rows stays one row."""

    def pad(values: Array | np.ndarray) -> Array:
        return jnp.asarray(np.pad(np.asarray(values), ((0, 0), (0, missing), *((0, 0),) * (values.ndim - 2)), "edge"))

    def pad_unless_alike(values: Array | np.ndarray) -> Array:
        return jnp.asarray(values) if values.shape[1] == 1 else pad(values)

    return Normals(
        pad(marginal.mean),
        pad(marginal.variance),
        pad_unless_alike(marginal.noise),
        pad_unless_alike(marginal.log_weights),
    )


@quick_jit
def _sites(X: Float[Array, "n d"], marginal: Normals) -> Sites:
    return sites(X, marginal.mean, marginal)


@quick_jit
def _corrected(part: LocalPart, at: Sites, marginal: Normals, neighbours: Int[Array, "n k"]) -> Normals:
    kernel = part.kernel
    conditioned = jax.vmap(kernel.condition)(at, jax.tree.map(lambda x: x[neighbours], part.rows))
    mean = jax.vmap(kernel.mean, (1, 0, 0), 1)(marginal.mean, conditioned.weights, part.residuals[neighbours])
    variances = kernel.variances(marginal.variance, marginal.noise, marginal.log_weights, conditioned.explained)
    return Normals(mean, *variances)


def log_densities(marginal: Normals, y: np.ndarray) -> np.ndarray:
    """log p(y | x) under each sample, (samples, rows), joint over targets."""
    marginal = jax.tree.map(jnp.asarray, marginal)
    spread = marginal.variance[..., None] + marginal.noise
    of_node = gaussian_log_density(jnp.asarray(y[..., None], float), marginal.mean[..., None], spread)
    return np.asarray(jnp.sum(jax.nn.logsumexp(of_node + marginal.log_weights, -1), -1))
