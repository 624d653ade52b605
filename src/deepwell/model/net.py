"""A Bayesian neural net: tanh layers, with priors on the weights that make it a prior over functions."""

import itertools
import math
from typing import Annotated, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deepwell.model.likelihoods import Likelihood
from deepwell.model.priors import flat_prior
from deepwell.numerics.linalg import matmul


@final
class Net(eqx.Module):
    """h_0 = x, h_l = tanh(h_{l-1} W_l / sqrt(inputs of the layer) + b_l), f = h W / sqrt(.) + b; W, b ~ N(0, 1).

    Springenberg, Klein, Falkner, Hutter (2016), "Bayesian Optimization with Robust Bayesian Neural Networks", with
    the weights scaled by fan-in, so that one prior suits every width.
    """

    weights: Annotated[tuple[Float[Array, "_ _"], ...], flat_prior]
    biases: Annotated[tuple[Float[Array, " _"], ...], flat_prior]
    likelihood: Likelihood

    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n p"]:
        h = X
        for W, b in zip(self.weights, self.biases, strict=True):
            f = matmul(h, W) / math.sqrt(W.shape[0]) + b
            h = jnp.tanh(f)
        return f

    def log_prior_weights(self) -> Float[Array, ""]:
        """log N(W, b; 0, 1), less its constant."""
        return -0.5 * jnp.sum(jnp.stack([jnp.sum(x**2) for x in (*self.weights, *self.biases)]))


def initial_net(
    key: PRNGKeyArray, num_inputs: int, num_targets: int, hidden_units: tuple[int, ...], likelihood: Likelihood
) -> Net:
    """Weights drawn from their prior, biases zero."""
    sizes = (num_inputs, *hidden_units, likelihood.num_latents(num_targets))
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = list(itertools.pairwise(sizes))
    return Net(
        weights=tuple(jax.random.normal(k, shape, float) for k, shape in zip(keys, shapes, strict=True)),
        biases=tuple(jnp.zeros((size,), float) for size in sizes[1:]),
        likelihood=likelihood,
    )
