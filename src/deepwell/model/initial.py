"""Starting values: inducing inputs by k-means, mean functions by PCA, hyperparameters by design."""

import math
import warnings
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from deepwell.model.deep_gp import DeepGP
from deepwell.model.kernels import Kernel, make_kernel
from deepwell.model.layers import InducingLayer
from deepwell.model.likelihoods import Likelihood
from deepwell.model.means import Identity, Mean, PaddedIdentity, PrincipalProjection, Zero
from deepwell.numerics.linalg import default_jitter

KMEANS_ROWS = 20_000


class Architecture(NamedTuple):
    """Shape of a deep GP and where its hyperparameters start; one entry a layer where it is a tuple."""

    widths: tuple[int, ...]  # of the hidden layers
    num_inducing: tuple[int, ...]
    kernels: tuple[str | Kernel, ...]
    hidden_variance: float
    output_variance: float
    lengthscale: float = 1.0  # times the square root of the layer's input dimension
    jitter: float | None = None

    @property
    def depth(self) -> int:
        return len(self.widths) + 1


def initial_model(
    rng: np.random.Generator, X: np.ndarray, num_targets: int, likelihood: Likelihood, architecture: Architecture
) -> DeepGP:
    """A deep GP for standardised inputs X: every hidden layer close to its mean function.

    Inducing inputs of the first layer are k-means centres of X; deeper ones are these centres passed
    through the mean functions.
    """
    jitter = default_jitter() if architecture.jitter is None else architecture.jitter
    num_outputs = likelihood.num_latents(num_targets)
    largest = max(architecture.num_inducing)
    centres = kmeans(rng, X, largest)
    layers = []
    running, Z = X, centres
    for level, (kernel, count) in enumerate(zip(architecture.kernels, architecture.num_inducing, strict=True)):
        last = level == architecture.depth - 1
        width = num_outputs if last else architecture.widths[level]
        dimension = running.shape[1]
        mean: Mean = Zero(num_outputs) if last else _hidden_mean(running, width)
        variance = architecture.output_variance if last else architecture.hidden_variance
        chosen = Z if count >= len(Z) else Z[np.sort(rng.choice(len(Z), count, replace=False))]
        layers.append(
            InducingLayer(
                kernel=make_kernel(kernel, dimension, variance, architecture.lengthscale * math.sqrt(dimension)),
                mean=mean,
                inducing_inputs=jnp.asarray(chosen, float),
                width=width,
                jitter=jitter,
            )
        )
        if not last:
            running, Z = np.asarray(mean(jnp.asarray(running))), np.asarray(mean(jnp.asarray(Z)))
    return DeepGP(tuple(layers), likelihood)


def variance_inputs(
    rng: np.random.Generator, X: np.ndarray, model: DeepGP, counts: tuple[int, ...] | None
) -> tuple[jnp.ndarray | None, ...]:
    """Inducing inputs of the variances, found as those of the mean are; None everywhere if there are no counts."""
    if counts is None:
        return (None,) * model.depth
    centres = kmeans(rng, X, max(counts))
    inputs = []
    for layer, count in zip(model.layers, counts, strict=True):
        chosen = centres if count >= len(centres) else centres[np.sort(rng.choice(len(centres), count, replace=False))]
        inputs.append(jnp.asarray(chosen, float))
        centres = np.asarray(layer.mean(jnp.asarray(centres, float)))
    return tuple(inputs)


def _hidden_mean(X: np.ndarray, width: int) -> Mean:
    dimension = X.shape[1]
    if width == dimension:
        return Identity()
    if width > dimension:
        return PaddedIdentity(width)
    directions = principal_directions(X, width)
    size = np.sqrt(np.mean((X @ directions) ** 2))  # outputs of mean square one, like standardised inputs
    return PrincipalProjection(jnp.asarray(directions / (size if size > 0.0 else 1.0), float))


def principal_directions(X: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` leading eigenvectors of X^T X as columns, each with its largest entry positive."""
    _, vectors = np.linalg.eigh(X.T @ X)
    leading = vectors[:, ::-1][:, :count]
    signs = np.sign(leading[np.argmax(np.abs(leading), axis=0), np.arange(count)])
    return leading * signs


def kmeans(rng: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """``count`` distinct centres; of a table with fewer distinct rows all of these, filled up to a power of two.

    The filling, points near the rows, does no harm, and tables of about one size then share one compiled program.
    """
    from scipy.cluster.vq import kmeans2

    rows = X if len(X) <= KMEANS_ROWS else X[rng.choice(len(X), KMEANS_ROWS, replace=False)]
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= count:
        missing = min(count, 1 << (len(distinct) - 1).bit_length()) - len(distinct)
        near = distinct[rng.integers(len(distinct), size=missing)]
        return np.concatenate([distinct, near + 0.5 * rng.standard_normal(near.shape)])
    starts = distinct[np.sort(rng.choice(len(distinct), count, replace=False))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a centre that loses all its rows stays where it is
        centres, _ = kmeans2(rows, starts, iter=20, minit="matrix")
    return np.unique(centres, axis=0)
