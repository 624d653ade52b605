"""Layers: what f(x) is, given Gaussian weights v ~ N(0, I) that inference learns."""

import abc
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from deepwell.model.kernels import Kernel
from deepwell.model.means import Mean
from deepwell.model.priors import inducing_inputs_prior
from deepwell.numerics.linalg import TINY, InverseFactor, inverse_cholesky_all, matmul


class Projection(NamedTuple):
    """Rows as a layer sees them, before any weight is chosen: f | v ~ N(mean + features v, variance) per row."""

    features: Float[Array, "n m"]
    variance: Float[Array, " n"]
    mean: Float[Array, "n w"]


class Layer(eqx.Module):
    """f | v ~ N(m(x) + A(x) v, R(x)) per row, with v ~ N(0, I); A and R are common to the outputs.

    A layer says what depends on theta alone (``prepare``) and how rows are projected (``project``).
    """

    mean: eqx.AbstractVar[Mean]
    width: eqx.AbstractVar[int]
    """Number of outputs."""
    jitter: eqx.AbstractVar[float]
    """Relative to the prior variance: added to the diagonal of ``gram``, and the least R."""
    caches_projections: ClassVar[bool] = True
    """Whether ``project`` depends on theta and the rows alone. Sampling then keeps the first layer's projections."""

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """Columns of A, rows of v."""

    @abc.abstractmethod
    def gram(self) -> Float[Array, "m m"] | None:
        """The matrix whose Cholesky factor the layer needs, or None. All layers are factorised as one batch."""

    @abc.abstractmethod
    def prepare(self, factor: InverseFactor | None) -> PyTree:
        """Everything that does not depend on the rows; ``factor`` is that of ``gram``."""

    @abc.abstractmethod
    def project(self, prepared: Any, X: Float[Array, "n d"]) -> Projection:
        """A, R and m at the rows of X."""

    @property
    def dtype(self) -> jnp.dtype:
        """Of its arrays."""
        return jax.tree.leaves(self)[0].dtype


class Prepared(NamedTuple):
    """What depends on theta alone: one part a layer, and how often the jitter of each had to grow tenfold."""

    layers: tuple[Any, ...]
    retries: Int[Array, " layers"]


def prepare_layers(layers: Sequence[Layer]) -> Prepared:
    """``prepare`` of every layer; Gram matrices of one size are factorised as one batch."""
    grams = {i: gram for i, layer in enumerate(layers) if (gram := layer.gram()) is not None}
    inverted = inverse_cholesky_all(list(grams.values()), [layers[i].jitter for i in grams])
    factors = dict(zip(grams, inverted, strict=True))
    never = jnp.zeros((), jnp.int32)
    retries = [factors[i].retries if i in factors else never for i in range(len(layers))]
    return Prepared(tuple(layer.prepare(factors.get(i)) for i, layer in enumerate(layers)), jnp.stack(retries))


def conditional(projection: Projection, v: Float[Array, "m w"]) -> tuple[Float[Array, "n w"], Float[Array, "n 1"]]:
    """Mean and variance of p(f | v), the variance common to the outputs."""
    return projection.mean + matmul(projection.features, v), projection.variance[:, None]


@final
class InducingLayer(Layer):
    """A sparse GP on whitened inducing outputs u = L v with L L^T = K_ZZ: A = K_xZ L^{-T}, R = k_xx - diag(A A^T).

    Inducing inputs and kernel are shared by the outputs.
    """

    kernel: Kernel
    mean: Mean
    inducing_inputs: Annotated[Float[Array, "m d"], inducing_inputs_prior]
    width: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)

    @property
    def num_features(self) -> int:
        return self.inducing_inputs.shape[-2]

    def gram(self) -> Float[Array, "m m"]:
        """K_ZZ."""
        return self.kernel(self.inducing_inputs, self.inducing_inputs)

    def prepare(self, factor: InverseFactor | None) -> Float[Array, "m m"]:
        """L^{-1}."""
        assert factor is not None
        return factor.inverse

    def project(self, prepared: Float[Array, "m m"], X: Float[Array, "n d"]) -> Projection:
        features = matmul(self.kernel(X, self.inducing_inputs), prepared.T)
        prior = self.kernel.diag(X)
        variance = jnp.maximum(prior - jnp.sum(features**2, -1), self.jitter * prior + TINY)
        return Projection(features, variance, self.mean(X))

    def mean_given(
        self, prepared: Float[Array, "m m"], X: Float[Array, "n d"], v: Float[Array, "m w"]
    ) -> Float[Array, "n w"]:
        """m(x) + A v without A: K_xZ (L^{-T} v) is linear in the number of inducing points."""
        return self.mean(X) + matmul(self.kernel(X, self.inducing_inputs), matmul(prepared.T, v))
