"""The posterior of a Bayesian neural net."""

from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.inference.posterior import SAMPLES_AT_ONCE, Functions, Posterior, pool_chains
from deepwell.model.likelihoods import Likelihood
from deepwell.model.net import Net
from deepwell.numerics.packing import Packing


@final
class Networks(Posterior):
    """Samples of all weights and the noise of a net like ``template``, as one vector each."""

    template: Net
    parameters: Float[Array, "c s k"]

    @property
    def draws(self) -> tuple[int, int]:
        return self.parameters.shape[0], self.parameters.shape[1]

    @property
    def depth(self) -> int:
        return 1

    def net(self, parameters: Float[Array, " k"]) -> Net:
        """The net of one sample."""
        return Packing(self.template).unpack(parameters)

    def prepare(self) -> None:
        return None

    def functions(self, prepared: None, X: Float[Array, "n d"]) -> Functions:
        means = jax.lax.map(lambda p: self.net(p)(X), pool_chains(self.parameters), batch_size=SAMPLES_AT_ONCE)
        return means, jnp.zeros_like(means[..., :1])

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return jax.vmap(lambda p: self.net(p).likelihood)(pool_chains(self.parameters)), 0

    def first_layers(self, count: int) -> "Networks":
        return self

    def start(self) -> Net:
        return jax.vmap(self.net)(self.parameters[:, -1])

    def probe_inputs(self) -> None:
        return None

    def sampled_parameters(self) -> dict[str, Array]:
        return {}
