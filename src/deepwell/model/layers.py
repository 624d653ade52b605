"""One sparse GP layer on whitened inducing outputs: u = L v with L L^T = K_ZZ and v ~ N(0, I)."""

from typing import NamedTuple, final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from deepwell.model.kernels import Kernel
from deepwell.model.means import Mean
from deepwell.numerics.linalg import TINY, InverseFactor, matmul


class Projection(NamedTuple):
    """What a layer needs to know of its inputs, before any inducing output is chosen.

    features: A = K_xZ L^{-T};  variance: k_xx - diag(A A^T);  mean: m(x).
    """

    features: Float[Array, "n m"]
    variance: Float[Array, " n"]
    mean: Float[Array, "n w"]


@final
class Layer(eqx.Module):
    """f | v ~ N(m(x) + A v, k_xx - A A^T) per row; inducing inputs and kernel shared by the outputs."""

    kernel: Kernel
    mean: Mean
    inducing_inputs: Float[Array, "m d"]
    width: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)

    @property
    def num_inducing(self) -> int:
        return self.inducing_inputs.shape[-2]

    def gram(self) -> Float[Array, "m m"]:
        """K_ZZ."""
        return self.kernel(self.inducing_inputs, self.inducing_inputs)

    def project(self, factor: InverseFactor, X: Float[Array, "n d"]) -> Projection:
        """The projection of X on the inducing inputs; the variance is kept above jitter * k_xx, and above zero."""
        features = matmul(self.kernel(X, self.inducing_inputs), factor.inverse.T)
        prior = self.kernel.diag(X)
        variance = jnp.maximum(prior - jnp.sum(features**2, -1), self.jitter * prior + TINY)
        return Projection(features, variance, self.mean(X))


def conditional(projection: Projection, v: Float[Array, "m w"]) -> tuple[Float[Array, "n w"], Float[Array, "n 1"]]:
    """Mean and variance of p(f | u = L v), the variance common to the outputs."""
    return projection.mean + matmul(projection.features, v), projection.variance[:, None]
