"""Posteriors of a deep GP: samples of v under one theta, samples of both, or q(v)."""

from typing import Any, ClassVar, final

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from deepwell.inference.posterior import SAMPLES_AT_ONCE, DeepGPStart, Functions, Posterior, pool_chains
from deepwell.model.deep_gp import DeepGP, Outputs, propagate
from deepwell.model.gaussian_outputs import (
    Belief,
    PreparedBelief,
    belief_around,
    belief_at,
    belief_from_draws,
    prepare_belief,
    propagate_belief,
)
from deepwell.model.layers import InducingLayer, Prepared
from deepwell.model.likelihoods import Likelihood
from deepwell.model.parameters import declared_arrays
from deepwell.numerics.packing import Packing


def _inducing_inputs(model: DeepGP) -> Float[Array, "m d"] | None:
    first = model.layers[0]
    return first.inducing_inputs if isinstance(first, InducingLayer) else None


@final
class SharedTheta(Posterior):
    """One theta, samples of v: the first layer's projection of a row serves all samples."""

    model: DeepGP
    samples: Outputs
    noise: Outputs

    @property
    def draws(self) -> tuple[int, int]:
        return self.samples[0].shape[0], self.samples[0].shape[1]

    @property
    def depth(self) -> int:
        return self.model.depth

    def prepare(self) -> Prepared:
        return self.model.prepare()

    def functions(self, prepared: Prepared, X: Float[Array, "n d"]) -> Functions:
        first = self.model.layers[0].project(prepared.layers[0], X)

        def one(sample: tuple[Outputs, Outputs]) -> tuple[Array, Array]:
            return propagate(self.model, prepared, sample[0], first, sample[1])

        return jax.lax.map(one, pool_chains((self.samples, self.noise)), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return self.model.likelihood, None

    def first_layers(self, count: int) -> "SharedTheta":
        return SharedTheta(self.model.first_layers(count), self.samples[:count], self.noise[: count - 1])

    def start(self) -> DeepGPStart:
        newest = jax.tree.map(lambda v: v[:, -1], self.samples)
        return DeepGPStart(self.model, newest, belief_from_draws(jax.tree.map(lambda v: v[0], self.samples)))

    def probe_inputs(self) -> Float[Array, "m d"] | None:
        return _inducing_inputs(self.model)

    def sampled_parameters(self) -> dict[str, Array]:
        return {}


def shared_theta(key: PRNGKeyArray, model: DeepGP, samples: Float[Array, "c s k"]) -> SharedTheta:
    """Vectors of each chain and draw as inducing outputs of the layers, and hidden noise for each."""
    outputs = Packing(model.zero_outputs())
    return SharedTheta(model, jax.vmap(jax.vmap(outputs.unpack))(samples), model.hidden_noise(key, samples.shape[:2]))


@final
class OwnTheta(Posterior):
    """A theta with every sample of v. ``parameters`` are all arrays of a model like ``template``, as one vector."""

    template: DeepGP
    parameters: Float[Array, "c s k"]
    samples: Outputs
    noise: Outputs

    @property
    def draws(self) -> tuple[int, int]:
        return self.parameters.shape[0], self.parameters.shape[1]

    @property
    def depth(self) -> int:
        return self.template.depth

    def model(self, parameters: Float[Array, " k"]) -> DeepGP:
        """The model of one sample."""
        return Packing(self.template).unpack(parameters)

    def prepare(self) -> Prepared:
        return jax.lax.map(lambda p: self.model(p).prepare(), pool_chains(self.parameters), batch_size=SAMPLES_AT_ONCE)

    def functions(self, prepared: Prepared, X: Float[Array, "n d"]) -> Functions:
        def one(sample: tuple[Array, Prepared, Outputs, Outputs]) -> tuple[Array, Array]:
            parameters, prepared, v, noise = sample
            model = self.model(parameters)
            return propagate(model, prepared, v, model.layers[0].project(prepared.layers[0], X), noise)

        parameters, samples, noise = pool_chains((self.parameters, self.samples, self.noise))
        return jax.lax.map(one, (parameters, prepared, samples, noise), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return jax.vmap(lambda p: self.model(p).likelihood)(pool_chains(self.parameters)), 0

    def first_layers(self, count: int) -> "OwnTheta":
        def cut(parameters: Float[Array, " k"]) -> Float[Array, " j"]:
            return Packing.pack(self.model(parameters).first_layers(count))

        parameters = jax.vmap(jax.vmap(cut))(self.parameters)
        template = self.template.first_layers(count)
        return OwnTheta(template, parameters, self.samples[:count], self.noise[: count - 1])

    def start(self) -> DeepGPStart:
        """Of the newest sample of the first chain: v belongs to its theta."""
        newest = jax.tree.map(lambda v: v[:1, -1], self.samples)
        first = jax.tree.map(lambda v: v[0], newest)
        return DeepGPStart(self.model(self.parameters[0, -1]), newest, belief_around(first))

    def probe_inputs(self) -> Float[Array, "m d"] | None:
        return _inducing_inputs(self.template)

    def sampled_parameters(self) -> dict[str, Array]:
        models = jax.vmap(self.model)(pool_chains(self.parameters))
        return {array.name: array.value for array in declared_arrays(models)}


@final
class Variational(Posterior):
    """One theta and q(v); hidden layers sampled, the last one's q(f) in closed form."""

    has_chains: ClassVar[bool] = False
    model: DeepGP
    belief: Belief
    noise: Outputs
    num_draws: int = eqx.field(static=True)

    @property
    def draws(self) -> tuple[int, int]:
        return 1, self.num_draws

    @property
    def depth(self) -> int:
        return self.model.depth

    def prepare(self) -> PreparedBelief:
        return prepare_belief(self.model, self.belief)

    def functions(self, prepared: PreparedBelief, X: Float[Array, "n d"]) -> Functions:
        parts: tuple[Any, Any] = prepared.for_mean.layers[0], prepared.for_variance.layers[0]
        first = belief_at(self.model.layers[0], self.belief[0], *parts, X)
        if self.model.depth == 1:  # one Gaussian says it all
            return jax.tree.map(lambda x: x[None], first)

        def one(noise: Outputs) -> tuple[Array, Array]:
            return propagate_belief(self.model, self.belief, prepared, first, noise)

        return jax.lax.map(one, pool_chains(self.noise), batch_size=SAMPLES_AT_ONCE)

    def likelihoods(self) -> tuple[Likelihood, int | None]:
        return self.model.likelihood, None

    def first_layers(self, count: int) -> "Variational":
        draws = 1 if count == 1 else self.num_draws
        return Variational(self.model.first_layers(count), self.belief[:count], self.noise[: count - 1], draws)

    def start(self) -> DeepGPStart:
        return DeepGPStart(self.model, tuple(q.mean[None] for q in self.belief), self.belief)

    def probe_inputs(self) -> Float[Array, "m d"] | None:
        return _inducing_inputs(self.model)

    def sampled_parameters(self) -> dict[str, Array]:
        return {}
