"""The deep GP: p(y, {f_l}, {u_l}) = p(y | f_L) prod_l p(f_l | u_l, f_{l-1}) p(u_l)   (the paper's Eq. 2)."""

import fnmatch
import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deepwell.model.layers import Layer, Projection, conditional
from deepwell.model.likelihoods import Likelihood
from deepwell.numerics.linalg import InverseFactor, inverse_cholesky_all
from deepwell.numerics.quadrature import LOG_TWO_PI
from deepwell.numerics.randomness import standard_normal

Objective = Literal["predictive", "expected"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)

Outputs = tuple[Float[Array, "..."], ...]
"""Whitened inducing outputs v, one (num_inducing, width) array a layer."""

Moments = tuple[Float[Array, "n _"], Float[Array, "n _"]]
"""Mean and variance of f at each row; the variance has one column when the outputs share it."""


class Batch(NamedTuple):
    """Rows as the first layer sees them, their targets, and a weight of 1, or 0 for padding."""

    first: Projection
    y: Float[Array, "n p"]
    weight: Float[Array, " n"]


@final
class DeepGP(eqx.Module):
    """Layers and a likelihood; all arrays but the principal directions are hyperparameters theta."""

    layers: tuple[Layer, ...]
    likelihood: Likelihood

    @property
    def depth(self) -> int:
        return len(self.layers)

    def factors(self) -> tuple[InverseFactor, ...]:
        """L^{-1} of every layer: it depends on theta alone, so sampling computes it once.

        Layers with equally many inducing points are factorised as one batch.
        """
        return inverse_cholesky_all([layer.gram() for layer in self.layers], [layer.jitter for layer in self.layers])

    def zero_outputs(self) -> Outputs:
        """v = 0: every layer at its mean function."""
        return tuple(jnp.zeros((layer.num_inducing, layer.width), layer.inducing_inputs.dtype) for layer in self.layers)

    def hidden_noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Outputs:
        """Standard normal draws, ``shape`` by width, for each hidden layer, drawn in one go."""
        ends = list(itertools.accumulate(layer.width for layer in self.layers[:-1]))
        if not ends:
            return ()
        draws = standard_normal(key, (*shape, ends[-1]), self.layers[0].inducing_inputs.dtype)
        return tuple(jnp.split(draws, ends[:-1], axis=-1))


def propagate(
    model: DeepGP, factors: tuple[InverseFactor, ...], v: Outputs, first: Projection, noise: Outputs
) -> Moments:
    """Mean and variance of f_L | {u_l}, f_{L-1}, the hidden layers f_l = mu_l + sqrt(var_l) noise_l sampled.

    Each ``noise`` is (n, width) when rows are independent, (width,) when all rows share one draw.
    """
    mean, variance = conditional(first, v[0])
    for layer, factor, v_l, noise_l in zip(model.layers[1:], factors[1:], v[1:], noise, strict=True):
        f = mean + jnp.sqrt(variance) * noise_l
        mean, variance = conditional(layer.project(factor, f), v_l)
    return mean, variance


def log_likelihood(
    key: PRNGKeyArray,
    model: DeepGP,
    factors: tuple[InverseFactor, ...],
    v: Outputs,
    batch: Batch,
    objective: Objective,
    inner_samples: int,
) -> Float[Array, ""]:
    """Mean over the batch of an estimate of log p(y_i | {u_l})."""

    def last_layer(noise: Outputs) -> Moments:
        return propagate(model, factors, v, batch.first, noise)

    return mean_log_density(key, model, last_layer, batch.y, batch.weight, objective, inner_samples)


def row_log_density(model: DeepGP, last: Moments, y: Float[Array, "n p"], objective: Objective) -> Float[Array, " n"]:
    """E log p(y | f_L) or log E p(y | f_L) of each row over f_L ~ N(last)."""
    mean, variance = last[0], jnp.broadcast_to(last[1], last[0].shape)
    if objective == "expected":
        return model.likelihood.variational_expectations(mean, variance, y)
    return model.likelihood.predict_log_density(mean, variance, y)


def mean_log_density(
    key: PRNGKeyArray,
    model: DeepGP,
    last_layer: Callable[[Outputs], Moments],
    y: Float[Array, "n p"],
    weight: Float[Array, " n"],
    objective: Objective,
    inner_samples: int,
) -> Float[Array, ""]:
    """Weighted mean over rows of an estimate of log p(y_i), ``last_layer`` giving f_L for a draw of the hidden noise.

    One propagation of the hidden layers gives ``expected``, E log p(y | f_L) over the last layer alone, or
    ``predictive``, log E p(y | f_L). K = ``inner_samples`` propagations are averaged inside the logarithm,
    log (1/K) sum_k exp(.), a bound that tightens as K grows.
    """

    def one(noise: Outputs) -> Float[Array, " n"]:
        return row_log_density(model, last_layer(noise), y, objective)

    if inner_samples == 1 or model.depth == 1:
        per_row = one(model.hidden_noise(key, (len(y),)))
    else:
        draws = jax.vmap(one)(model.hidden_noise(key, (inner_samples, len(y))))
        per_row = jax.nn.logsumexp(draws, axis=0) - jnp.log(float(inner_samples)).astype(draws.dtype)
    return jnp.sum(weight * per_row) / jnp.sum(weight)


def log_prior_outputs(v: Outputs) -> Float[Array, ""]:
    """log p(v) = log N(v; 0, I): whitening makes p(u) = N(0, K_ZZ) this for every theta."""
    return jnp.sum(jnp.stack([-0.5 * (jnp.sum(x**2) + x.size * LOG_TWO_PI) for x in v]))


def split_parameters(model: DeepGP, fixed: Sequence[str] = ()) -> tuple[DeepGP, DeepGP]:
    """Split a model into theta, the free arrays, and constants; ``equinox.combine`` puts them together.

    ``fixed`` are patterns over parameter names such as ``layers.0.kernel.log_variance`` or
    ``likelihood.*``; principal directions and the offset of counts are always constants.
    """
    names = parameter_names(model)
    for pattern in fixed:
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"fixed={pattern!r} matches no parameter: choose from {', '.join(names)}")

    def is_free(path: tuple, leaf: Array) -> bool:
        name = _path_name(path)
        return not (_is_constant(name) or any(fnmatch.fnmatchcase(name, pattern) for pattern in fixed))

    return eqx.partition(model, jax.tree_util.tree_map_with_path(is_free, model))


def parameter_names(model: DeepGP) -> list[str]:
    """Dotted names of all hyperparameters."""
    paths = [_path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    return [name for name in paths if not _is_constant(name)]


def _path_name(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_constant(name: str) -> bool:
    return name.endswith((".mean.directions", "likelihood.offset"))  # of a PrincipalProjection, of Poisson
