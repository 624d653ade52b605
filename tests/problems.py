"""Small problems whose answers are known in closed form."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.data.rows import Rows
from deepwell.inference.problem import Config, Problem
from deepwell.inference.sghmc import Dynamics
from deepwell.model.deep_gp import DeepGP, split_parameters
from deepwell.model.kernels import SquaredExponential
from deepwell.model.layers import Layer
from deepwell.model.likelihoods import Gaussian
from deepwell.model.means import Identity, Zero

CONFIG = Config(
    method="sghmc", objective="predictive", inner_samples=1, batch_size=None, dynamics=Dynamics(), shortest_window=0,
    burn_in=1,
    window_size=300, learning_rate=0.01, priors=None, num_chains=1, num_samples=1,
    spacing=1, dsvi_start=0, e_steps=500, e_samples=10, m_steps=200,
)  # fmt: skip


def gp_layer(Z, width, mean, lengthscale=1.0, variance=1.0, jitter=1e-8):
    dimension = Z.shape[1]
    kernel = SquaredExponential(
        jnp.full((dimension,), np.log(lengthscale), float), jnp.full((), np.log(variance), float)
    )
    return Layer(kernel, mean, jnp.asarray(Z, float), width, jitter)


def shallow(Z, lengthscale=0.5, variance=1.0, noise=0.1, jitter=1e-8):
    layer = gp_layer(Z, 1, Zero(1), lengthscale, variance, jitter)
    return DeepGP((layer,), Gaussian(jnp.full((1,), np.log(noise), float), 0.0))


def two_layers(Z, hidden_variance, lengthscale=0.5, noise=0.1, jitter=1e-8):
    dimension = Z.shape[1]
    hidden = gp_layer(Z, dimension, Identity(), 1.0, hidden_variance, jitter)
    last = gp_layer(Z, 1, Zero(1), lengthscale, 1.0, jitter)
    return DeepGP((hidden, last), Gaussian(jnp.full((1,), np.log(noise), float), 0.0))


def line_data(rows=40, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-1.5, 1.5, (rows, 1)), axis=0)
    return X, np.sin(3.0 * X) + np.sqrt(noise) * rng.standard_normal((rows, 1))


def to_rows(X, y):
    return Rows(jnp.asarray(X, float), jnp.asarray(y, float), jnp.asarray(len(X), jnp.int32))


def problem_of(model, fixed=()):
    outputs = jax.tree.map(lambda v: v[None], model.zero_outputs())
    return Problem(*split_parameters(model, fixed), outputs)


class Quadratic(NamedTuple):
    """U(v)/N = v'Hv/2 - b'v + const of a depth-1 model with Gaussian noise."""

    H: np.ndarray
    b: np.ndarray


def quadratic(model, X, y, objective):
    """Closed form of the potential: DTC for ``expected``, FITC for ``predictive``."""
    features, variance = features_and_variance(model, X)
    noise = np.exp(float(model.likelihood.log_noise_variance[0]))
    spread = np.full(len(X), noise) if objective == "expected" else variance + noise
    count = len(X)
    H = (features.T @ (features / spread[:, None]) + np.eye(features.shape[1])) / count
    return Quadratic(H, features.T @ (y[:, 0] / spread) / count)


def features_and_variance(model, X):
    projection = model.layers[0].project(model.factors()[0], jnp.asarray(X, float))
    return np.asarray(projection.features, np.float64), np.asarray(projection.variance, np.float64)


def flat_density(config, problem, X, y):
    """The library's own density (key, v) -> (log joint / N, mean log-likelihood) on all rows."""
    from jax.flatten_util import ravel_pytree

    from deepwell.inference.problem import target

    aim = target(config, problem, to_rows(X, y))
    theta, _ = ravel_pytree(problem.theta)
    return aim.density(jax.random.key(0), theta, aim.prepare(theta))
