"""Mean functions of the layers: a hidden layer starts out as (nearly) the identity, the last one at zero."""

import abc
from typing import Annotated, final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.model.parameters import CONSTANT
from deepwell.numerics.linalg import matmul


class Mean(eqx.Module):
    """m(x), the prior mean of a layer's outputs."""

    @abc.abstractmethod
    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n w"]:
        """The matrix [m(x_i)]."""


@final
class Zero(Mean):
    """m(x) = 0."""

    width: int = eqx.field(static=True)

    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n w"]:
        return jnp.zeros((X.shape[0], self.width), X.dtype)


@final
class Identity(Mean):
    """m(x) = x."""

    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n w"]:
        return X


@final
class PaddedIdentity(Mean):
    """m(x) = (x, 0, ..., 0), for a layer wider than its input."""

    width: int = eqx.field(static=True)

    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n w"]:
        return jnp.pad(X, ((0, 0), (0, self.width - X.shape[1])))


@final
class PrincipalProjection(Mean):
    """m(x) = V^T x, V the leading principal directions of the inputs, for a layer narrower than its input."""

    directions: Annotated[Float[Array, "d w"], CONSTANT]

    def __call__(self, X: Float[Array, "n d"]) -> Float[Array, "n w"]:
        return matmul(X, self.directions)
