"""Likelihoods of classes; y is one column that holds the number of the class, 0, 1, ..."""

import math
from typing import ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from deepwell.data.response import Kind
from deepwell.model.likelihoods.base import Likelihood
from deepwell.numerics.quadrature import at_nodes, hermite, sobol_normal_nodes

NODES = 20
SOFTMAX_NODES = 64
EPSILON = 1e-3
FARTHEST = 1e4
"""Latents are cut here before normal probabilities are taken: their squares must not overflow."""


class Probabilities(NamedTuple):
    """P(y = c) = exp(log_probabilities_c), normalised."""

    log_probabilities: Float[Array, "n c"]


class ClassLikelihood(Likelihood):
    """Everything follows from the probabilities of the classes."""

    response: ClassVar[Kind] = "classes"

    def predict_mean_and_var(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"]
    ) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
        p = jnp.exp(self.marginal(mean, variance).log_probabilities)
        return p, p * (1.0 - p)


def _of_class(values: Float[Array, "n c"], y: Float[Array, "n 1"]) -> Float[Array, " n"]:
    """The entry of each row's class."""
    return jnp.take_along_axis(values, y.astype(jnp.int32), -1)[:, 0]


def _log_normal_cdf(z: Array) -> Array:
    return log_ndtr(jnp.clip(z, -FARTHEST, FARTHEST))


@final
class RobustMax(ClassLikelihood):
    """p(y = c | f) = 1 - epsilon if f_c is the largest latent, epsilon / (C - 1) otherwise.

    Under q(f) = prod_j N(f_j; m_j, v_j) the largest is f_c with probability

        p_c = int N(f_c; m_c, v_c) prod_{j != c} Phi((f_c - m_j) / sqrt(v_j)) df_c     (Gauss-Hermite)

    (Hernandez-Lobato, Hernandez-Lobato, Dupont 2011, "Robust Multi-class Gaussian Process Classification").
    """

    smooth: ClassVar[bool] = False
    num_classes: int = eqx.field(static=True)
    epsilon: float = eqx.field(static=True, default=EPSILON)

    def num_latents(self, num_targets: int) -> int:
        return self.num_classes

    def largest(
        self, mean: Float[Array, "n c"], variance: Float[Array, "n c"], of: Float[Array, "n b"]
    ) -> Float[Array, "n b"]:
        """p_c for the classes whose numbers stand in ``of``.

        Classes and nodes are the leading axes: products over a short last axis are several times slower on a CPU.
        """
        nodes, weights = hermite(NODES, mean.dtype)
        means, stds = mean.T, jnp.sqrt(variance).T

        def one(number: Float[Array, " n"]) -> Float[Array, " n"]:
            is_own = jnp.arange(self.num_classes, dtype=jnp.int32)[:, None] == number.astype(jnp.int32)
            own_mean, own_std = (jnp.sum(jnp.where(is_own, x, 0.0), 0) for x in (means, stds))
            f = own_mean + own_std * nodes[:, None]
            gaps = jnp.clip((f - means[:, None]) / stds[:, None], -FARTHEST, FARTHEST)
            below = 0.5 + 0.5 * jax.lax.erf(gaps / math.sqrt(2.0))
            return weights @ jnp.prod(jnp.where(is_own[:, None], 1.0, below), 0)

        return one(of[:, 0])[:, None] if of.shape[1] == 1 else jax.lax.map(one, of.T).T  # many classes need memory

    def _log_values(self) -> tuple[float, float]:
        return math.log1p(-self.epsilon), math.log(self.epsilon / (self.num_classes - 1))

    def log_prob(self, f: Float[Array, "n c"], y: Float[Array, "n 1"]) -> Float[Array, " n"]:
        right, wrong = self._log_values()
        return jnp.where(jnp.argmax(f, -1).astype(y.dtype) == y[:, 0], right, wrong).astype(f.dtype)

    def predict_log_density(
        self, mean: Float[Array, "n c"], variance: Float[Array, "n c"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        p = self.largest(mean, variance, y)[:, 0]
        floor = self.epsilon / (self.num_classes - 1)
        return jnp.log(floor + (1.0 - self.epsilon - floor) * p)

    def variational_expectations(
        self, mean: Float[Array, "n c"], variance: Float[Array, "n c"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        right, wrong = self._log_values()
        p = self.largest(mean, variance, y)[:, 0]
        return p * right + (1.0 - p) * wrong

    def marginal(self, mean: Float[Array, "n c"], variance: Float[Array, "n _"]) -> Probabilities:
        every = jnp.broadcast_to(jnp.arange(self.num_classes, dtype=mean.dtype), mean.shape)
        p = self.largest(mean, jnp.broadcast_to(variance, mean.shape), every)
        p = p / jnp.sum(p, -1, keepdims=True)
        floor = self.epsilon / (self.num_classes - 1)
        return Probabilities(jnp.log(floor + (1.0 - self.epsilon - floor) * p))


@final
class Softmax(ClassLikelihood):
    """p(y = c | f) = exp(f_c) / sum_j exp(f_j); expectations by fixed quasi-random nodes, the same for every row."""

    num_classes: int = eqx.field(static=True)

    def num_latents(self, num_targets: int) -> int:
        return self.num_classes

    def log_prob(self, f: Float[Array, "n c"], y: Float[Array, "n 1"]) -> Float[Array, " n"]:
        return _of_class(jax.nn.log_softmax(f, -1), y)

    def _at_nodes(self, mean: Float[Array, "n c"], variance: Float[Array, "n c"]) -> Float[Array, "c k n"]:
        nodes = jnp.asarray(sobol_normal_nodes(self.num_classes, SOFTMAX_NODES), mean.dtype)
        return jax.nn.log_softmax(mean.T[:, None] + jnp.sqrt(variance).T[:, None] * nodes.T[:, :, None], 0)

    def predict_log_density(
        self, mean: Float[Array, "n c"], variance: Float[Array, "n c"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        return _of_class(self.marginal(mean, variance).log_probabilities, y)

    def variational_expectations(
        self, mean: Float[Array, "n c"], variance: Float[Array, "n c"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        return _of_class(jnp.mean(self._at_nodes(mean, variance), 1).T, y)

    def marginal(self, mean: Float[Array, "n c"], variance: Float[Array, "n _"]) -> Probabilities:
        per_node = self._at_nodes(mean, jnp.broadcast_to(variance, mean.shape))
        return Probabilities(jax.nn.logsumexp(per_node, 1).T - math.log(SOFTMAX_NODES))


@final
class ProbitBernoulli(ClassLikelihood):
    """Two classes, p(y = 1 | f) = Phi(f), so that int Phi(f) N(f; m, v) df = Phi(m / sqrt(1 + v))."""

    def num_latents(self, num_targets: int) -> int:
        return 1

    def log_prob(self, f: Float[Array, "n 1"], y: Float[Array, "n 1"]) -> Float[Array, " n"]:
        return _log_normal_cdf(_signed(f, y))[:, 0]

    def predict_log_density(
        self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        return _log_normal_cdf(_signed(mean / jnp.sqrt(1.0 + variance), y))[:, 0]

    def variational_expectations(
        self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        nodes, weights = hermite(NODES, mean.dtype)
        return (_log_normal_cdf(at_nodes(_signed(mean, y), variance, nodes)) @ weights)[:, 0]

    def marginal(self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"]) -> Probabilities:
        z = mean / jnp.sqrt(1.0 + variance)
        return Probabilities(_log_normal_cdf(jnp.concatenate([-z, z], -1)))


@final
class LogitBernoulli(ClassLikelihood):
    """Two classes, p(y = 1 | f) = 1 / (1 + exp(-f)), by Gauss-Hermite quadrature."""

    def num_latents(self, num_targets: int) -> int:
        return 1

    def log_prob(self, f: Float[Array, "n 1"], y: Float[Array, "n 1"]) -> Float[Array, " n"]:
        return jax.nn.log_sigmoid(_signed(f, y))[:, 0]

    def predict_log_density(
        self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        return _of_class(self.marginal(mean, variance).log_probabilities, y)

    def variational_expectations(
        self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"], y: Float[Array, "n 1"]
    ) -> Float[Array, " n"]:
        nodes, weights = hermite(NODES, mean.dtype)
        return (jax.nn.log_sigmoid(at_nodes(_signed(mean, y), variance, nodes)) @ weights)[:, 0]

    def marginal(self, mean: Float[Array, "n 1"], variance: Float[Array, "n 1"]) -> Probabilities:
        nodes, weights = hermite(NODES, mean.dtype)
        f = at_nodes(jnp.concatenate([-mean, mean], -1), variance, nodes)
        return Probabilities(jax.nn.logsumexp(jax.nn.log_sigmoid(f) + jnp.log(weights), -1))


def _signed(f: Float[Array, "n 1"], y: Float[Array, "n 1"]) -> Float[Array, "n 1"]:
    """f for class 1, -f for class 0."""
    return (2.0 * y - 1.0) * f
