"""Weak priors on hyperparameters: added to the objective of the M-step (MAP), or sampled under."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from deepwell.model.parameters import declared_arrays

MANY_INPUTS = 16


class LogNormal(NamedTuple):
    """log x ~ N(log median, scale^2); as the prior of a parameter, which holds log x."""

    median: float
    scale: float

    def log_density_of_log(self, log_x: Float[Array, "..."]) -> Float[Array, ""]:
        """sum log N(log x; log median, scale^2), a density over log x, less its constant."""
        return -0.5 * jnp.sum(((log_x - math.log(self.median)) / self.scale) ** 2)

    def __call__(self, value: Array, start: Array, priors: "Priors") -> Float[Array, ""]:
        return self.log_density_of_log(value)


class Priors(NamedTuple):
    """Priors in standardised units. The lengthscale's median is for one input; it grows as sqrt(inputs).

    Inducing inputs are normal around where k-means put them. Hundreds of free coordinates are what small
    and noisy tables overfit by: without this prior the 95 % intervals of such tables cover too little.
    """

    lengthscale: LogNormal = LogNormal(1.0, 0.5)
    variance: LogNormal = LogNormal(0.3, 1.0)
    noise: LogNormal = LogNormal(0.05, 1.0)
    excess_degrees: LogNormal = LogNormal(4.0, 1.0)
    inducing_scale: float = 0.4


def lengthscale_prior(value: Float[Array, " d"], start: Array, priors: Priors) -> Float[Array, ""]:
    """Of the logarithms of d lengthscales.

    The median grows as sqrt(d). Beyond 16 inputs the scale shrinks: each of many lengthscales is a way to overfit.
    """
    count = value.shape[-1]
    median = priors.lengthscale.median * math.sqrt(count)
    scale = priors.lengthscale.scale * min(1.0, math.sqrt(MANY_INPUTS / count))
    return LogNormal(median, scale).log_density_of_log(value)


def variance_prior(value: Array, start: Array, priors: Priors) -> Float[Array, ""]:
    """Of the logarithm of a kernel's variance."""
    return priors.variance.log_density_of_log(value)


def noise_prior(value: Array, start: Array, priors: Priors) -> Float[Array, ""]:
    """Of the logarithm of a noise variance."""
    return priors.noise.log_density_of_log(value)


def excess_degrees_prior(value: Array, start: Array, priors: Priors) -> Float[Array, ""]:
    """Of the logarithm of degrees of freedom above two."""
    return priors.excess_degrees.log_density_of_log(value)


def inducing_inputs_prior(value: Array, start: Array, priors: Priors) -> Float[Array, ""]:
    """sum log N(z; where z started, inducing_scale^2), less its constant."""
    return -0.5 * jnp.sum(((value - start) / priors.inducing_scale) ** 2)


def flat_prior(value: Array, start: Array, priors: Priors) -> Float[Array, ""]:
    """Of parameters that have no prior, or whose density stands elsewhere: those of q(v), the weights of a net."""
    return jnp.zeros((), value.dtype)


def log_prior(parameters: PyTree, start: PyTree, priors: Priors) -> Float[Array, ""]:
    """Log prior density of all parameters of a model, or of a tuple of parts of one, less its constant.

    ``start`` is the tree before learning.
    """
    terms = []
    for now, before in zip(declared_arrays(parameters), declared_arrays(start), strict=True):
        if now.prior is not None and now.prior is not flat_prior:
            terms.append(now.prior(now.value, before.value, priors))
    return jnp.sum(jnp.stack(terms)) if terms else jnp.zeros(())
