"""Layers: random features converge to the exact kernel; what the contract promises holds for both kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deepwell.assess.small_problems import gp_layer
from deepwell.model.kernels import Matern12, Matern32, Matern52, SquaredExponential
from deepwell.model.layers import conditional, prepare_layers
from deepwell.model.means import Identity, Zero
from deepwell.model.random_features import random_feature_layer

KERNELS = (SquaredExponential, Matern12, Matern32, Matern52)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def kernel_of(cls):
    return cls(jnp.log(jnp.asarray([0.7, 1.4])), jnp.log(jnp.asarray(1.7)))


def features(kernel, count, seed=0):
    layer = random_feature_layer(np.random.default_rng(seed), kernel, Zero(1), 1, count, 1e-8)
    X = jnp.asarray(np.random.default_rng(9).standard_normal((12, 2)))
    return np.asarray(layer.project(layer.prepare(None), X).features), np.asarray(kernel(X, X))


def off(kernel, count, drawn_as=None):
    """Root mean square error of A A^T, in kernel variances; the frequencies may be those of another kernel."""
    A, exact = features(kernel if drawn_as is None else kernel_of(drawn_as), count)
    exact = exact if drawn_as is None else features(kernel, 1)[1]
    return np.sqrt(np.mean((A @ A.T - exact) ** 2)) / 1.7


@pytest.mark.parametrize("cls", KERNELS)
def test_random_features_converge_to_the_exact_kernel(cls):
    """The error of F frequencies has standard deviation 1 / sqrt(2 F) at most."""
    kernel = kernel_of(cls)
    few, many = off(kernel, 100), off(kernel, 40_000)
    assert many < 0.01 < few / 3.0
    A, _ = features(kernel, 100)
    np.testing.assert_allclose(np.sum(A**2, 1), 1.7)  # the diagonal is exact


def test_frequencies_of_another_kernel_are_caught():
    assert off(kernel_of(Matern32), 40_000, SquaredExponential) > 0.02
    assert off(kernel_of(SquaredExponential), 40_000, Matern12) > 0.02


def test_their_functions_are_draws_of_the_gp():
    """Var f over v ~ N(0, I) is k(x, x) up to the floor, and the mean is the mean function."""
    layer = random_feature_layer(np.random.default_rng(0), kernel_of(Matern52), Identity(), 2, 50, 1e-6)
    X = jnp.asarray(np.random.default_rng(1).standard_normal((3, 2)))
    projection = layer.project(layer.prepare(layer.gram()), X)
    mean, variance = conditional(projection, jnp.zeros((layer.num_features, layer.width)))
    np.testing.assert_array_equal(mean, X)
    np.testing.assert_allclose(variance[:, 0], 1e-6 * 1.7, rtol=1e-5)
    v = np.random.default_rng(2).standard_normal((20_000, layer.num_features))
    np.testing.assert_allclose(np.var(v @ np.asarray(projection.features).T, 0), 1.7, rtol=0.05)


def test_layers_of_both_kinds_are_prepared_together():
    inducing = [gp_layer(np.linspace(-1, 1, count)[:, None], 1, Zero(1)) for count in (5, 7, 5)]
    random = random_feature_layer(np.random.default_rng(0), inducing[0].kernel, Zero(1), 1, 4, 1e-8)
    prepared = prepare_layers([inducing[0], random, *inducing[1:]])
    assert prepared.retries.shape == (4,)
    for place, layer in ((0, inducing[0]), (2, inducing[1]), (3, inducing[2])):
        L = np.linalg.cholesky(np.asarray(layer.gram()) + 1e-8 * np.eye(layer.num_features))
        np.testing.assert_allclose(prepared.layers[place] @ L, np.eye(layer.num_features), atol=1e-6)
    np.testing.assert_array_equal(prepared.layers[1], random.prepare(None))
