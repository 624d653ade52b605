"""Small problems in one input whose answers are known in closed form or cheap to compute."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.rows import Rows
from deepwell.inference.problem import Problem
from deepwell.model.deep_gp import DeepGP, split_parameters
from deepwell.model.kernels import SquaredExponential
from deepwell.model.layers import InducingLayer
from deepwell.model.likelihoods import Gaussian
from deepwell.model.means import Identity, Mean, Zero


def gp_layer(
    Z: np.ndarray, width: int, mean: Mean, lengthscale: float = 1.0, variance: float = 1.0, jitter: float = 1e-8
) -> InducingLayer:
    """A layer with a squared exponential kernel."""
    kernel = SquaredExponential(
        jnp.full((Z.shape[1],), np.log(lengthscale), float), jnp.full((), np.log(variance), float)
    )
    return InducingLayer(kernel=kernel, mean=mean, inducing_inputs=jnp.asarray(Z, float), width=width, jitter=jitter)


def shallow(
    Z: np.ndarray, lengthscale: float = 0.5, variance: float = 1.0, noise: float = 0.1, jitter: float = 1e-8
) -> DeepGP:
    """Depth 1, Gaussian noise."""
    layer = gp_layer(Z, 1, Zero(1), lengthscale, variance, jitter)
    return DeepGP((layer,), Gaussian(jnp.full((1,), np.log(noise), float), 0.0))


def two_layers(
    Z: np.ndarray,
    hidden_variance: float,
    lengthscale: float = 0.5,
    noise: float = 0.1,
    jitter: float = 1e-8,
    hidden_Z: np.ndarray | None = None,
) -> DeepGP:
    """Depth 2, the hidden layer around the identity; its inducing inputs are Z unless it has its own."""
    hidden = gp_layer(Z if hidden_Z is None else hidden_Z, Z.shape[1], Identity(), 1.0, hidden_variance, jitter)
    last = gp_layer(Z, 1, Zero(1), lengthscale, 1.0, jitter)
    return DeepGP((hidden, last), Gaussian(jnp.full((1,), np.log(noise), float), 0.0))


def line_data(rows: int = 40, seed: int = 0, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """A noisy sine."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-1.5, 1.5, (rows, 1)), axis=0)
    return X, np.sin(3.0 * X) + np.sqrt(noise) * rng.standard_normal((rows, 1))


def rows_of(X: np.ndarray, y: np.ndarray) -> Rows:
    """All rows in their order, none padded."""
    return Rows(jnp.asarray(X, float), jnp.asarray(y, float), jnp.asarray(len(X), jnp.int32))


def problem_of(model: DeepGP, fixed: Sequence[str] = ()) -> Problem:
    """The model as inference takes it, v at zero."""
    outputs = jax.tree.map(lambda v: v[None], model.zero_outputs())
    return Problem(*split_parameters(model, fixed), outputs)


class Quadratic(NamedTuple):
    """U(v)/N = v'Hv/2 - b'v + const of a depth-1 model with Gaussian noise."""

    H: np.ndarray
    b: np.ndarray


def quadratic(model: DeepGP, X: np.ndarray, y: np.ndarray, objective: str) -> Quadratic:
    """Closed form of the potential: DTC for ``expected``, FITC for ``predictive``."""
    features, variance = features_and_variance(model, X)
    noise = np.exp(float(model.likelihood.log_noise_variance[0]))  # type: ignore[attr-defined]
    spread = np.full(len(X), noise) if objective == "expected" else variance + noise
    count = len(X)
    H = (features.T @ (features / spread[:, None]) + np.eye(features.shape[1])) / count
    return Quadratic(H, features.T @ (y[:, 0] / spread) / count)


def features_and_variance(model: DeepGP, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and k_xx - diag(A A') of the first layer."""
    projection = model.layers[0].project(model.prepare().layers[0], jnp.asarray(X, float))
    return np.asarray(projection.features, np.float64), np.asarray(projection.variance, np.float64)
