"""The deep GP: p(y, {f_l}, {u_l}) = p(y | f_L) prod_l p(f_l | u_l, f_{l-1}) p(u_l)   (the paper's Eq. 2)."""

import fnmatch
import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, final, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deepwell.errors import InputError
from deepwell.model.layers import Layer, Prepared, Projection, conditional, prepare_layers
from deepwell.model.likelihoods import Likelihood
from deepwell.model.parameters import declared_arrays
from deepwell.numerics.quadrature import LOG_TWO_PI
from deepwell.numerics.randomness import standard_normal

Objective = Literal["predictive", "expected"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)

Outputs = tuple[Float[Array, "..."], ...]
"""The weights v, whitened inducing outputs: one (num_features, width) array a layer."""

MeanAndVariance = tuple[Float[Array, "n _"], Float[Array, "n _"]]
"""Mean and variance of f at each row; the variance has one column when the outputs share it."""


class Batch(NamedTuple):
    """Rows as the first layer sees them, their targets, and a weight of 1, or 0 for padding."""

    first: Projection
    y: Float[Array, "n p"]
    weight: Float[Array, " n"]


@final
class DeepGP(eqx.Module):
    """Layers and a likelihood; all arrays but the declared constants are hyperparameters theta."""

    layers: tuple[Layer, ...]
    likelihood: Likelihood

    @property
    def depth(self) -> int:
        return len(self.layers)

    def prepare(self) -> Prepared:
        """What depends on theta alone, such as L^{-1} of every layer; sampling computes it once."""
        return prepare_layers(self.layers)

    def zero_outputs(self) -> Outputs:
        """v = 0: every layer at its mean function."""
        return tuple(jnp.zeros((layer.num_features, layer.width), layer.dtype) for layer in self.layers)

    def hidden_noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Outputs:
        """Standard normal draws, ``shape`` by width, for each hidden layer, drawn in one go."""
        ends = list(itertools.accumulate(layer.width for layer in self.layers[:-1]))
        if not ends:
            return ()
        draws = standard_normal(key, (*shape, ends[-1]), self.layers[0].dtype)
        return tuple(jnp.split(draws, ends[:-1], axis=-1))

    def first_layers(self, count: int) -> "DeepGP":
        """The model cut off after so many layers."""
        return DeepGP(self.layers[:count], self.likelihood)


def propagate(model: DeepGP, prepared: Prepared, v: Outputs, first: Projection, noise: Outputs) -> MeanAndVariance:
    """Mean and variance of f_L | {u_l}, f_{L-1}, the hidden layers f_l = mu_l + sqrt(var_l) noise_l sampled.

    Each ``noise`` is (n, width) when rows are independent, (width,) when all rows share one draw.
    """
    mean, variance = conditional(first, v[0])
    for layer, part, v_l, noise_l in zip(model.layers[1:], prepared.layers[1:], v[1:], noise, strict=True):
        f = mean + jnp.sqrt(variance) * noise_l
        mean, variance = conditional(layer.project(part, f), v_l)
    return mean, variance


def log_likelihood(
    key: PRNGKeyArray,
    model: DeepGP,
    prepared: Prepared,
    v: Outputs,
    batch: Batch,
    objective: Objective,
    inner_samples: int,
) -> Float[Array, ""]:
    """Mean over the batch of an estimate of log p(y_i | {u_l})."""

    def last_layer(noise: Outputs) -> MeanAndVariance:
        return propagate(model, prepared, v, batch.first, noise)

    return mean_log_density(key, model, last_layer, batch.y, batch.weight, objective, inner_samples)


def row_log_density(
    model: DeepGP, last: MeanAndVariance, y: Float[Array, "n p"], objective: Objective
) -> Float[Array, " n"]:
    """E log p(y | f_L) or log E p(y | f_L) of each row over f_L ~ N(last)."""
    mean, variance = last[0], jnp.broadcast_to(last[1], last[0].shape)
    if objective == "expected":
        return model.likelihood.variational_expectations(mean, variance, y)
    return model.likelihood.predict_log_density(mean, variance, y)


def mean_log_density(
    key: PRNGKeyArray,
    model: DeepGP,
    last_layer: Callable[[Outputs], MeanAndVariance],
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

    ``fixed`` are patterns over parameter names such as ``layers.0.kernel.log_variance`` or ``likelihood.*``.
    """
    names = parameter_names(model)
    for pattern in fixed:
        if not fnmatch.filter(names, pattern):
            raise InputError(f"fixed={pattern!r} matches no parameter: choose from {', '.join(names)}")
    is_free = [
        array.prior is not None and not any(fnmatch.fnmatchcase(array.name, pattern) for pattern in fixed)
        for array in declared_arrays(model)
    ]
    return eqx.partition(model, jax.tree.unflatten(jax.tree.structure(model), is_free))


def parameter_names(model: DeepGP) -> list[str]:
    """Dotted names of all hyperparameters."""
    return [array.name for array in declared_arrays(model) if array.prior is not None]
