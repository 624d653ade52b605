"""Weak priors on hyperparameters: added to the objective of the M-step (MAP), or sampled under."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

MANY_INPUTS = 16


class LogNormal(NamedTuple):
    """log x ~ N(log median, scale^2)."""

    median: float
    scale: float

    def log_density_of_log(self, log_x: Float[Array, "..."]) -> Float[Array, ""]:
        """sum log N(log x; log median, scale^2), a density over log x, less its constant."""
        return -0.5 * jnp.sum(((log_x - math.log(self.median)) / self.scale) ** 2)


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


def _for_inputs(one: LogNormal, count: int) -> LogNormal:
    """The prior of a lengthscale among many: the median grows as sqrt(count); beyond 16 inputs they are held together,
    since each of many lengthscales is a way to overfit."""
    return LogNormal(one.median * math.sqrt(count), one.scale * min(1.0, math.sqrt(MANY_INPUTS / count)))


def log_prior(parameters: PyTree, start: PyTree, priors: Priors) -> Float[Array, ""]:
    """Log prior density of all hyperparameters in a model or any tree of parts of one, less its constant.

    ``start`` is the tree before learning. Arrays whose names are not those of hyperparameters count nothing.
    """
    terms = []
    paths = jax.tree_util.tree_leaves_with_path(parameters)
    for (path, leaf), begun in zip(paths, jax.tree.leaves(start), strict=True):
        name = jax.tree_util.keystr(path[-1:], simple=True)
        if name == "log_lengthscales":
            terms.append(_for_inputs(priors.lengthscale, leaf.shape[-1]).log_density_of_log(leaf))
        elif name == "log_variance":
            terms.append(priors.variance.log_density_of_log(leaf))
        elif name == "log_noise_variance":
            terms.append(priors.noise.log_density_of_log(leaf))
        elif name == "log_excess_degrees":
            terms.append(priors.excess_degrees.log_density_of_log(leaf))
        elif name in ("inducing_inputs", "variance_inputs"):
            terms.append(-0.5 * jnp.sum(((leaf - begun) / priors.inducing_scale) ** 2))
    return jnp.sum(jnp.stack(terms)) if terms else jnp.zeros(())
