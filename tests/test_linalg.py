import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwell.numerics.linalg import MAX_RETRIES, inverse_cholesky


def covariance(seed, size):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((size, size + 2))
    return A @ A.T / size


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 2, 5, 12]))
def test_inverse_factor_equals_numpy(seed, size):
    K = covariance(seed, size)
    with jax.enable_x64(True):
        factor = inverse_cholesky(jnp.asarray(K), 1e-12)
    expected = np.linalg.inv(np.linalg.cholesky(K))
    np.testing.assert_allclose(factor.inverse, expected, rtol=1e-5, atol=1e-7)
    assert factor.retries == 0


def test_gradient_equals_autodiff_through_the_factorisation():
    K = covariance(3, 6)
    weight = np.random.default_rng(1).standard_normal((6, 6))
    jitter = 1e-2  # large, so that a missing gradient through the jitter would show

    def by_hand(K):
        return jnp.sum(weight * inverse_cholesky(K, jitter).inverse)

    def plain(K):
        K = 0.5 * (K + K.T)
        L = jnp.linalg.cholesky(K + jitter * jnp.mean(jnp.diag(K)) * jnp.eye(6))
        return jnp.sum(weight * jax.scipy.linalg.solve_triangular(L, jnp.eye(6), lower=True))

    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.grad(by_hand)(jnp.asarray(K)), jax.grad(plain)(jnp.asarray(K)), rtol=1e-8)


@pytest.mark.parametrize("matrix", [np.ones((40, 40)), np.full((3, 3), 1e-12), np.ones((4, 4)) - 1e-3 * np.eye(4)])
def test_singular_matrices_get_more_jitter_and_never_nan(matrix):
    factor = jax.jit(inverse_cholesky, static_argnums=1)(jnp.asarray(matrix, jnp.float32), 1e-9)
    assert np.all(np.isfinite(factor.inverse))
    assert 0 < int(factor.retries) <= MAX_RETRIES


def test_one_bad_matrix_of_a_batch_leaves_the_others_alone():
    good = jnp.asarray(covariance(0, 4), jnp.float32)
    batch = jnp.stack([good, jnp.ones((4, 4), jnp.float32)])
    factors = jax.vmap(lambda K: inverse_cholesky(K, 1e-9))(batch)
    np.testing.assert_allclose(factors.inverse[0], inverse_cholesky(good, 1e-9).inverse, rtol=1e-6)
    assert factors.retries[0] == 0
    assert factors.retries[1] > 0
