"""What inference ends with: functions drawn from the posterior, each a Gaussian over f_L(x) at every x.

Hidden layers' noise is drawn once per sample and layer, never per row: a sample is one function, and what it says of
a row depends on that row alone.
"""

import abc
from collections.abc import Callable
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from deepwell.model.deep_gp import DeepGP, Outputs, propagate
from deepwell.model.gaussian_outputs import Belief, marginal, pairs_of_factors, propagate_belief
from deepwell.model.likelihoods import Described, Likelihood
from deepwell.model.net import Net
from deepwell.numerics.linalg import InverseFactor

SAMPLES_AT_ONCE, DESCRIBED_AT_ONCE = 50, 5

Functions = tuple[Float[Array, "s n p"], Float[Array, "s n q"]]
"""Mean and variance of f_L under each sample; q is 1 when the outputs share the variance."""


class Posterior(eqx.Module):
    """Samples over (chain, draw), the leading axes of every sampled array."""

    @property
    @abc.abstractmethod
    def draws(self) -> tuple[int, int]:
        """Chains, and samples of each."""

    @abc.abstractmethod
    def prepare(self) -> PyTree:
        """What does not depend on the rows: factors of K_ZZ."""

    @abc.abstractmethod
    def functions(self, prepared: PyTree, X: Float[Array, "n d"]) -> Functions:
        """f_L at the rows of standardised X."""

    @abc.abstractmethod
    def likelihoods(self) -> tuple[Likelihood, int | None]:
        """The likelihood under each sample, stacked along axis 0; or the one of all samples, and None for the axis."""

    def described(self, functions: Functions) -> Described:
        """p(y | x) under each sample."""
        return self._for_each(functions, lambda likelihood, mean, variance: likelihood.describe(mean, variance))

    def log_densities(self, functions: Functions, y: Float[Array, "n p"]) -> Float[Array, "s n"]:
        """log p(y | x) under each sample."""
        return self._for_each(
            functions,
            lambda likelihood, mean, variance: likelihood.predict_log_density(
                mean, jnp.broadcast_to(variance, mean.shape), y
            ),
        )

    def _for_each(self, functions: Functions, answer: Callable[[Likelihood, Array, Array], PyTree]) -> PyTree:
        found, axis = self.likelihoods()
        if axis is None:
            return jax.lax.map(lambda f: answer(found, *f), functions, batch_size=DESCRIBED_AT_ONCE)
        return jax.lax.map(lambda pair: answer(pair[0], *pair[1]), (found, functions), batch_size=DESCRIBED_AT_ONCE)


@final
class SharedTheta(Posterior):
    """One theta, samples of v: the first layer's projection of a row serves all samples."""

    model: DeepGP
    samples: Outputs
    noise: Outputs

    @property
    def draws(self) -> tuple[int, int]:
        return self.samples[0].shape[0], self.samples[0].shape[1]

    def prepare(self) -> tuple[InverseFactor, ...]:
        return self.model.factors()

    def functions(self, prepared: tuple[InverseFactor, ...], X: Float[Array, "n d"]) -> Functions:
        first = self.model.layers[0].project(prepared[0], X)

        def one(sample: tuple[Outputs, Outputs]) -> tuple[Array, Array]:
            return propagate(self.model, prepared, sample[0], first, sample[1])

        return jax.lax.map(one, _flat((self.samples, self.noise)), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return self.model.likelihood, None


def shared_theta(key: PRNGKeyArray, model: DeepGP, samples: Float[Array, "c s k"]) -> SharedTheta:
    """Vectors of each chain and draw as inducing outputs of the layers, and hidden noise for each."""
    _, unravel = ravel_pytree(model.zero_outputs())
    return SharedTheta(model, jax.vmap(jax.vmap(unravel))(samples), model.hidden_noise(key, samples.shape[:2]))


@final
class OwnTheta(Posterior):
    """A theta with every sample of v. ``parameters`` are all arrays of a model like ``template``, ravelled."""

    template: DeepGP
    parameters: Float[Array, "c s k"]
    samples: Outputs
    noise: Outputs

    @property
    def draws(self) -> tuple[int, int]:
        return self.parameters.shape[0], self.parameters.shape[1]

    def model(self, parameters: Float[Array, " k"]) -> DeepGP:
        """The model of one sample."""
        return ravel_pytree(self.template)[1](parameters)

    def prepare(self) -> tuple[InverseFactor, ...]:
        return jax.lax.map(lambda p: self.model(p).factors(), _flat(self.parameters), batch_size=SAMPLES_AT_ONCE)

    def functions(self, prepared: tuple[InverseFactor, ...], X: Float[Array, "n d"]) -> Functions:
        def one(sample: tuple[Array, tuple[InverseFactor, ...], Outputs, Outputs]) -> tuple[Array, Array]:
            parameters, factors, v, noise = sample
            model = self.model(parameters)
            return propagate(model, factors, v, model.layers[0].project(factors[0], X), noise)

        parameters, samples, noise = _flat((self.parameters, self.samples, self.noise))
        return jax.lax.map(one, (parameters, prepared, samples, noise), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return jax.vmap(lambda p: self.model(p).likelihood)(_flat(self.parameters)), 0


@final
class Variational(Posterior):
    """One theta and q(v); hidden layers sampled, the last one's q(f) in closed form."""

    model: DeepGP
    belief: Belief
    noise: Outputs
    num_draws: int = eqx.field(static=True)

    @property
    def draws(self) -> tuple[int, int]:
        return 1, self.num_draws

    def prepare(self) -> PyTree:
        return pairs_of_factors(self.model, self.belief)

    def functions(self, prepared: PyTree, X: Float[Array, "n d"]) -> Functions:
        first = marginal(self.model.layers[0], self.belief[0], prepared[0], X)
        if self.model.depth == 1:  # one Gaussian says it all
            return jax.tree.map(lambda x: x[None], first)

        def one(noise: Outputs) -> tuple[Array, Array]:
            return propagate_belief(self.model, self.belief, prepared, first, noise)

        return jax.lax.map(one, _flat(self.noise), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return self.model.likelihood, None


@final
class Networks(Posterior):
    """Samples of all weights and the noise of a net like ``template``, ravelled."""

    template: Net
    parameters: Float[Array, "c s k"]

    @property
    def draws(self) -> tuple[int, int]:
        return self.parameters.shape[0], self.parameters.shape[1]

    def net(self, parameters: Float[Array, " k"]) -> Net:
        """The net of one sample."""
        return ravel_pytree(self.template)[1](parameters)

    def prepare(self) -> None:
        return None

    def functions(self, prepared: None, X: Float[Array, "n d"]) -> Functions:
        means = jax.lax.map(lambda p: self.net(p)(X), _flat(self.parameters), batch_size=SAMPLES_AT_ONCE)
        return means, jnp.zeros_like(means[..., :1])

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return jax.vmap(lambda p: self.net(p).likelihood)(_flat(self.parameters)), 0


def _flat(tree: PyTree) -> PyTree:
    """(chain, draw, ...) -> (chain * draw, ...)."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)
