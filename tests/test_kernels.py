import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as reference

from deepwell.model import kernels

LENGTHSCALES = np.array([0.5, 1.0, 2.0])
X = np.random.default_rng(0).standard_normal((7, 3))
Z = np.random.default_rng(1).standard_normal((5, 3))


def stationary(cls):
    return cls(jnp.log(jnp.asarray(LENGTHSCALES, float)), jnp.log(jnp.asarray(1.7, float)))


@pytest.mark.parametrize(
    ("cls", "oracle"),
    [
        (kernels.SquaredExponential, reference.RBF(LENGTHSCALES)),
        (kernels.Matern12, reference.Matern(LENGTHSCALES, nu=0.5)),
        (kernels.Matern32, reference.Matern(LENGTHSCALES, nu=1.5)),
        (kernels.Matern52, reference.Matern(LENGTHSCALES, nu=2.5)),
    ],
)
def test_stationary_kernels_equal_sklearn(cls, oracle):
    with jax.enable_x64(True):
        kernel = stationary(cls)
        np.testing.assert_allclose(kernel(jnp.asarray(X), jnp.asarray(Z)), 1.7 * oracle(X, Z), rtol=1e-10)
        np.testing.assert_allclose(kernel.diag(jnp.asarray(X)), 1.7 * oracle.diag(X), rtol=1e-12)


def test_linear_sum_and_product():
    with jax.enable_x64(True):
        a = stationary(kernels.SquaredExponential)
        b = kernels.Linear(jnp.log(jnp.array([1.0, 2.0, 3.0])))
        x, z = jnp.asarray(X), jnp.asarray(Z)
        np.testing.assert_allclose(b(x, z), X @ np.diag([1.0, 2.0, 3.0]) @ Z.T, rtol=1e-12)
        np.testing.assert_allclose(kernels.Sum((a, b))(x, z), a(x, z) + b(x, z), rtol=1e-12)
        np.testing.assert_allclose(kernels.Product((a, b))(x, z), a(x, z) * b(x, z), rtol=1e-12)
        for kernel in (a, b, kernels.Sum((a, b)), kernels.Product((a, b))):
            np.testing.assert_allclose(kernel.diag(x), np.diag(kernel(x, x)), rtol=1e-7)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([*kernels.KERNEL_NAMES, "se+linear", "se*linear", "matern32 + se * linear"]),
    st.integers(0, 99),
)
def test_gram_matrices_are_positive_semidefinite(expression, seed):
    points = np.random.default_rng(seed).standard_normal((10, 2))
    with jax.enable_x64(True):
        gram = np.asarray(kernels.make_kernel(expression, 2, 0.7, 1.3)(jnp.asarray(points), jnp.asarray(points)))
    assert np.linalg.eigvalsh(gram).min() > -1e-6


@pytest.mark.parametrize("name", kernels.KERNEL_NAMES)
def test_diagonals_are_exact_in_single_precision(name):
    points = jnp.asarray(3.0 * np.random.default_rng(0).standard_normal((40, 13)), jnp.float32)
    kernel = kernels.make_kernel(name, 13, 1.0, 1.0)
    np.testing.assert_allclose(np.diag(kernel(points, points)), kernel.diag(points), rtol=3e-6)


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52", "se"])
def test_gradients_are_finite_where_points_coincide(name):
    kernel = kernels.make_kernel(name, 3, 1.0, 1.0)
    points = jnp.asarray(np.vstack([X, X]), float)
    gradient = jax.grad(lambda p: jnp.sum(kernel(p, p)))(points)
    assert np.all(np.isfinite(gradient))


def test_product_binds_tighter_than_sum():
    kernel = kernels.make_kernel("se + matern12 * linear", 1, 1.0, 1.0)
    assert isinstance(kernel, kernels.Sum)
    assert isinstance(kernel.kernels[1], kernels.Product)
    with pytest.raises(ValueError, match="unknown kernel 'rbf'"):
        kernels.make_kernel("rbf", 1, 1.0, 1.0)
