"""What inference ends with: functions drawn from the posterior, each a Gaussian over f_L(x) at every x.

Hidden layers' noise is drawn once per sample and layer, never per row: a sample is one function, and its value at a
row depends on that row alone.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from deepwell.model.deep_gp import DeepGP, Outputs
from deepwell.model.gaussian_outputs import Belief
from deepwell.model.likelihoods import Likelihood, Marginal
from deepwell.model.net import Net

SAMPLES_AT_ONCE, MARGINALS_AT_ONCE = 50, 5

Functions = tuple[Float[Array, "s n p"], Float[Array, "s n q"]]
"""Mean and variance of f_L under each sample; q is 1 when the outputs share the variance."""


class DeepGPStart(NamedTuple):
    """What a posterior knows of a deep GP: theta, v of each chain, and q(v) or as much of it as samples tell."""

    model: DeepGP
    outputs: Outputs
    belief: Belief


class Posterior(eqx.Module):
    """Samples over (chain, draw), the leading axes of every sampled array."""

    has_chains: ClassVar[bool] = True
    """Whether the draws are those of Markov chains, which can be diagnosed."""

    @property
    @abc.abstractmethod
    def draws(self) -> tuple[int, int]:
        """Chains, and samples of each."""

    @property
    @abc.abstractmethod
    def depth(self) -> int:
        """Layers whose outputs can be looked at, the last one included."""

    @abc.abstractmethod
    def prepare(self) -> PyTree:
        """What does not depend on the rows, such as factors of K_ZZ."""

    @abc.abstractmethod
    def functions(self, prepared: Any, X: Float[Array, "n d"]) -> Functions:
        """f_L at the rows of standardised X."""

    @abc.abstractmethod
    def likelihoods(self) -> tuple[Likelihood, int | None]:
        """The likelihood under each sample, stacked along axis 0; or the one of all samples, and None for the axis."""

    @abc.abstractmethod
    def first_layers(self, count: int) -> "Posterior":
        """The posterior of the first ``count`` layers, whose functions are the outputs of the last of them."""

    @abc.abstractmethod
    def start(self) -> DeepGPStart | Net:
        """Where another fit can start: a deep GP, or nets stacked over chains."""

    @abc.abstractmethod
    def probe_inputs(self) -> Float[Array, "m d"] | None:
        """Standardised inputs near the data, or None if the posterior holds none."""

    @abc.abstractmethod
    def sampled_parameters(self) -> dict[str, Array]:
        """Hyperparameters by name, one value a sample; empty if all samples share them."""

    def marginals(self, functions: Functions) -> Marginal:
        """p(y | x) under each sample."""
        return self._for_each(functions, lambda likelihood, mean, variance: likelihood.marginal(mean, variance))

    def log_densities(self, functions: Functions, y: Float[Array, "n t"]) -> Float[Array, "s n"]:
        """log p(y | x) under each sample."""
        return self._for_each(
            functions,
            lambda likelihood, mean, variance: likelihood.predict_log_density(
                mean, jnp.broadcast_to(variance, mean.shape), y
            ),
        )

    def _for_each(self, functions: Functions, answer: Callable[[Likelihood, Array, Array], PyTree]) -> PyTree:
        likelihood, axis = self.likelihoods()
        if axis is None:
            return jax.lax.map(lambda f: answer(likelihood, *f), functions, batch_size=MARGINALS_AT_ONCE)
        pairs = (likelihood, functions)
        return jax.lax.map(lambda pair: answer(pair[0], *pair[1]), pairs, batch_size=MARGINALS_AT_ONCE)


def pool_chains(tree: PyTree) -> PyTree:
    """(chain, draw, ...) -> (chain * draw, ...)."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)
