"""A layer of random features: the kernel by its spectrum, without inducing points."""

import math
from typing import Annotated, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deepwell.model.kernels import Stationary
from deepwell.model.layers import Layer, Projection
from deepwell.model.means import Mean
from deepwell.model.parameters import CONSTANT
from deepwell.numerics.linalg import TINY, InverseFactor, matmul


@final
class RandomFeatureLayer(Layer):
    """f = m(x) + A v with A = sqrt(variance / F) (cos(x W), sin(x W)) and W_df = frequencies_df / lengthscale_d.

    With frequencies drawn from the kernel's spectral density, A(x) A(z)^T -> k(x, z) as F grows (Rahimi, Recht 2007,
    "Random Features for Large-Scale Kernel Machines"; for deep GPs Cutajar, Bonilla, Michiardi, Filippone 2017).
    """

    kernel: Stationary
    mean: Mean
    frequencies: Annotated[Float[Array, "d f"], CONSTANT]
    width: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)

    @property
    def num_features(self) -> int:
        return 2 * self.frequencies.shape[-1]

    def gram(self) -> None:
        return None

    def prepare(self, factor: InverseFactor | None) -> Float[Array, "d f"]:
        """W."""
        return self.frequencies * jnp.exp(-self.kernel.log_lengthscales)[:, None]

    def project(self, prepared: Float[Array, "d f"], X: Float[Array, "n d"]) -> Projection:
        phase = matmul(X, prepared)
        prior = self.kernel.diag(X)
        scale = jnp.sqrt(prior / prepared.shape[-1])[:, None]
        features = scale * jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], 1)
        return Projection(features, self.jitter * prior + TINY, self.mean(X))


def random_feature_layer(
    rng: np.random.Generator, kernel: Stationary, mean: Mean, width: int, num_frequencies: int, jitter: float
) -> RandomFeatureLayer:
    """A layer whose frequencies are drawn from the spectral density of the kernel.

    It is normal for the squared exponential, and a Student t of 2 nu degrees of freedom for Matern nu.
    """
    dimension, degrees = len(kernel.log_lengthscales), kernel.spectral_degrees
    frequencies = rng.standard_normal((dimension, num_frequencies))
    if degrees is not None:
        frequencies *= math.sqrt(degrees) / np.sqrt(rng.chisquare(degrees, num_frequencies))
    return RandomFeatureLayer(
        kernel=kernel, mean=mean, frequencies=jnp.asarray(frequencies, float), width=width, jitter=jitter
    )
