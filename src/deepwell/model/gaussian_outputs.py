"""A Gaussian belief over a layer's whitened inducing outputs, q(v) = N(mean, S) for each output.

Salimbeni, Deisenroth (2017), "Doubly Stochastic Variational Inference for Deep Gaussian Processes"; with inducing
inputs of its own for the variance it is the decoupled form, in the parameterisation in which the two separate
(Salimbeni, Cheng, Boots, Deisenroth 2018, "Orthogonally Decoupled Variational Gaussian Processes", is a relative).
"""

import dataclasses
from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.model.deep_gp import DeepGP, Moments, Outputs
from deepwell.model.layers import Layer
from deepwell.numerics.linalg import InverseFactor, inverse_cholesky_all, matmul

FIRST_INNER_VARIANCE = 1e-5
"""Variance of q(v) in hidden layers before learning: small, so that the signal gets through."""


@final
class GaussianOutputs(eqx.Module):
    """q(v) of one layer: mean at the layer's inducing inputs, S = C C^T at those or at ``variance_inputs``.

    ``scale`` holds C below the diagonal and log C_ii on it; what is above the diagonal is ignored.
    """

    mean: Float[Array, "a w"]
    scale: Float[Array, "w b b"]
    variance_inputs: Float[Array, "b d"] | None = None

    @property
    def log_diagonal(self) -> Float[Array, "w b"]:
        return jnp.diagonal(self.scale, axis1=-2, axis2=-1)

    def cholesky(self) -> Float[Array, "w b b"]:
        """C."""
        return jnp.tril(self.scale, -1) + jnp.exp(self.log_diagonal)[..., None] * jnp.eye(
            self.scale.shape[-1], dtype=self.scale.dtype
        )

    def kl(self) -> Float[Array, ""]:
        """KL(q || p) = sum over outputs of (|mean|^2 + tr S - log det S - M_b) / 2."""
        log_det = 2.0 * jnp.sum(self.log_diagonal)
        return 0.5 * (jnp.sum(self.mean**2) + jnp.sum(self.cholesky() ** 2) - log_det - self.log_diagonal.size)


Belief = tuple[GaussianOutputs, ...]
"""q(v) of all layers."""

PairsOfFactors = tuple[tuple[InverseFactor, InverseFactor], ...]
"""L^{-1} of every layer at the inputs of the mean and at those of the variance."""


def initial_belief(model: DeepGP, variance_inputs: tuple[Array | None, ...]) -> Belief:
    """Mean zero; S = I in the last layer, as in the prior, and nearly zero in the others."""

    def one(level: int, layer: Layer, inputs: Array | None) -> GaussianOutputs:
        count = layer.num_inducing if inputs is None else len(inputs)
        variance = 1.0 if level == model.depth - 1 else FIRST_INNER_VARIANCE
        dtype = layer.inducing_inputs.dtype
        diagonal = 0.5 * jnp.log(jnp.asarray(variance, dtype)) * jnp.eye(count, dtype=dtype)
        scale = jnp.broadcast_to(diagonal, (layer.width, count, count))
        return GaussianOutputs(jnp.zeros((layer.num_inducing, layer.width), dtype), scale, inputs)

    pairs = zip(model.layers, variance_inputs, strict=True)
    return tuple(one(level, layer, inputs) for level, (layer, inputs) in enumerate(pairs))


def pairs_of_factors(model: DeepGP, belief: Belief) -> PairsOfFactors:
    """All factors, those of one size in one batch; a layer whose two sets are one has one factor."""
    for_mean = model.factors()
    apart = {i: _variance_layer(layer, q) for i, (layer, q) in enumerate(zip(model.layers, belief, strict=True))}
    others = {i: layer for i, layer in apart.items() if belief[i].variance_inputs is not None}
    found = inverse_cholesky_all([x.gram() for x in others.values()], [x.jitter for x in others.values()])
    for_variance = dict(zip(others, found, strict=True))
    return tuple((factor, for_variance.get(i, factor)) for i, factor in enumerate(for_mean))


def _variance_layer(layer: Layer, q: GaussianOutputs) -> Layer:
    if q.variance_inputs is None:
        return layer
    return dataclasses.replace(layer, inducing_inputs=q.variance_inputs)


def marginal(
    layer: Layer, q: GaussianOutputs, factors: tuple[InverseFactor, InverseFactor], X: Float[Array, "n d"]
) -> Moments:
    """q(f) at each row: mean m(x) + A_a v_a, variance k_xx - A_b A_b^T + A_b S A_b^T, per output.

    Apart, the mean needs no A_a: K_xa (L_a^{-T} v_a) is linear in the number of inducing points.
    """
    b = _variance_layer(layer, q).project(factors[1], X)
    outputs, count, _ = q.scale.shape
    flat = jnp.moveaxis(q.cholesky(), 0, 1).reshape(count, outputs * count)
    spread = matmul(b.features, flat).reshape(len(X), outputs, count)
    if q.variance_inputs is None:
        mean = matmul(b.features, q.mean)
    else:
        mean = matmul(layer.kernel(X, layer.inducing_inputs), matmul(factors[0].inverse.T, q.mean))
    return b.mean + mean, b.variance[:, None] + jnp.sum(spread**2, -1)


def propagate_belief(model: DeepGP, belief: Belief, factors: PairsOfFactors, first: Moments, noise: Outputs) -> Moments:
    """Mean and variance of f_L under q, the hidden layers f_l = mu_l + sqrt(var_l) noise_l sampled.

    ``first`` are the moments of the first layer. Each ``noise`` is (n, width), or (width,) shared by all rows.
    """
    mean, variance = first
    for layer, q, pair, noise_l in zip(model.layers[1:], belief[1:], factors[1:], noise, strict=True):
        mean, variance = marginal(layer, q, pair, mean + jnp.sqrt(variance) * noise_l)
    return mean, variance
