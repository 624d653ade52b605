"""A Gaussian belief over a layer's whitened inducing outputs, q(v) = N(mean, S) for each output.

Salimbeni, Deisenroth (2017), "Doubly Stochastic Variational Inference for Deep Gaussian Processes"; with inducing
inputs of its own for the variance it is the decoupled form, in the parameterisation in which the two separate
(Salimbeni, Cheng, Boots, Deisenroth 2018, "Orthogonally Decoupled Variational Gaussian Processes", is a relative).
"""

import dataclasses
from typing import Annotated, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from deepwell.errors import InputError
from deepwell.model.deep_gp import DeepGP, MeanAndVariance, Outputs
from deepwell.model.layers import InducingLayer, Layer, Prepared, prepare_layers
from deepwell.model.priors import flat_prior, inducing_inputs_prior
from deepwell.numerics.linalg import matmul

FIRST_INNER_VARIANCE = 1e-5
"""Variance of q(v) in hidden layers before learning: small, so that the signal gets through."""


@final
class GaussianOutputs(eqx.Module):
    """q(v) of one layer: mean at the layer's inducing inputs, S = C C^T at those or at ``variance_inputs``.

    ``scale`` holds C below the diagonal and log C_ii on it; what is above the diagonal is ignored.
    """

    mean: Annotated[Float[Array, "a w"], flat_prior]
    scale: Annotated[Float[Array, "w b b"], flat_prior]
    variance_inputs: Annotated[Float[Array, "b d"] | None, inducing_inputs_prior] = None

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


class PreparedBelief(NamedTuple):
    """What depends on theta and the variances' inducing inputs alone: for the means, and for the variances."""

    for_mean: Prepared
    for_variance: Prepared

    @property
    def retries(self) -> Int[Array, " layers"]:
        return jnp.maximum(self.for_mean.retries, self.for_variance.retries)


def initial_belief(model: DeepGP, variance_inputs: tuple[Array | None, ...]) -> Belief:
    """Mean zero; S = I in the last layer, as in the prior, and nearly zero in the others."""

    def one(level: int, layer: Layer, inputs: Array | None) -> GaussianOutputs:
        count = layer.num_features if inputs is None else len(inputs)
        variance = 1.0 if level == model.depth - 1 else FIRST_INNER_VARIANCE
        diagonal = 0.5 * jnp.log(jnp.asarray(variance, layer.dtype)) * jnp.eye(count, dtype=layer.dtype)
        scale = jnp.broadcast_to(diagonal, (layer.width, count, count))
        return GaussianOutputs(jnp.zeros((layer.num_features, layer.width), layer.dtype), scale, inputs)

    pairs = zip(model.layers, variance_inputs, strict=True)
    return tuple(one(level, layer, inputs) for level, (layer, inputs) in enumerate(pairs))


def belief_around(v: Outputs) -> Belief:
    """q(v) close around one v."""
    spread = [jnp.full(x.shape, np.sqrt(FIRST_INNER_VARIANCE), x.dtype) for x in v]
    return tuple(_with_diagonal(mean, std) for mean, std in zip(v, spread, strict=True))


def belief_from_draws(draws: Outputs) -> Belief:
    """Mean and standard deviation of each coordinate over the draws, the leading axis."""
    smallest = np.sqrt(FIRST_INNER_VARIANCE)
    return tuple(_with_diagonal(jnp.mean(x, 0), jnp.maximum(jnp.std(x, 0), smallest)) for x in draws)


def _with_diagonal(mean: Float[Array, "m w"], std: Float[Array, "m w"]) -> GaussianOutputs:
    return GaussianOutputs(mean, jax.vmap(jnp.diag)(jnp.log(std.T)))


def decoupled(model: DeepGP, belief: Belief) -> Belief:
    """The same q(v), its variances with inducing inputs of their own that start at those of the means."""

    def one(layer: Layer, q: GaussianOutputs) -> GaussianOutputs:
        if q.variance_inputs is not None:
            return q
        return GaussianOutputs(q.mean, q.scale, _inducing(layer).inducing_inputs)

    return tuple(one(layer, q) for layer, q in zip(model.layers, belief, strict=True))


def coupled(model: DeepGP, belief: Belief) -> Belief:
    """The same means; variances that had inducing inputs of their own start afresh."""
    fresh = initial_belief(model, (None,) * model.depth)
    pairs = zip(fresh, belief, strict=True)
    return tuple(q if q.variance_inputs is None else GaussianOutputs(q.mean, new.scale) for new, q in pairs)


def prepare_belief(model: DeepGP, belief: Belief) -> PreparedBelief:
    """What depends on theta alone; a layer whose two sets of inducing inputs are one is prepared once."""
    for_mean = model.prepare()
    apart = [i for i, q in enumerate(belief) if q.variance_inputs is not None]
    if not apart:
        return PreparedBelief(for_mean, for_mean)
    others = prepare_layers([_variance_layer(model.layers[i], belief[i]) for i in apart])
    parts, retries = dict(enumerate(for_mean.layers)), for_mean.retries
    for place, i in enumerate(apart):
        parts[i], retries = others.layers[place], retries.at[i].set(others.retries[place])
    return PreparedBelief(for_mean, Prepared(tuple(parts.values()), retries))


def _inducing(layer: Layer) -> InducingLayer:
    """Decoupled inference moves inducing inputs, which other layers lack."""
    if not isinstance(layer, InducingLayer):
        raise InputError(f"decoupled inference needs layers with inducing points, not {type(layer).__name__}")
    return layer


def _variance_layer(layer: Layer, q: GaussianOutputs) -> Layer:
    if q.variance_inputs is None:
        return layer
    return dataclasses.replace(_inducing(layer), inducing_inputs=q.variance_inputs)


def belief_at(
    layer: Layer, q: GaussianOutputs, for_mean: PyTree, for_variance: PyTree, X: Float[Array, "n d"]
) -> MeanAndVariance:
    """q(f) at each row: mean m(x) + A_a v_a, variance k_xx - A_b A_b^T + A_b S A_b^T, per output.

    ``for_mean`` and ``for_variance`` are what the layer has prepared at its two sets of inducing inputs, a and b.
    """
    b = _variance_layer(layer, q).project(for_variance, X)
    outputs, count, _ = q.scale.shape
    flat = jnp.moveaxis(q.cholesky(), 0, 1).reshape(count, outputs * count)
    spread = matmul(b.features, flat).reshape(len(X), outputs, count)
    if q.variance_inputs is None:
        mean = b.mean + matmul(b.features, q.mean)
    else:
        mean = _inducing(layer).mean_given(for_mean, X, q.mean)
    return mean, b.variance[:, None] + jnp.sum(spread**2, -1)


def propagate_belief(
    model: DeepGP, belief: Belief, prepared: PreparedBelief, first: MeanAndVariance, noise: Outputs
) -> MeanAndVariance:
    """Mean and variance of f_L under q, the hidden layers f_l = mu_l + sqrt(var_l) noise_l sampled.

    ``first`` is q(f) of the first layer. Each ``noise`` is (n, width), or (width,) shared by all rows.
    """
    mean, variance = first
    parts = zip(prepared.for_mean.layers[1:], prepared.for_variance.layers[1:], strict=True)
    for layer, q, pair, noise_l in zip(model.layers[1:], belief[1:], parts, noise, strict=True):
        mean, variance = belief_at(layer, q, *pair, mean + jnp.sqrt(variance) * noise_l)
    return mean, variance
