"""Small dense linear algebra that stays finite in float32 and differentiates by matrix products."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

MAX_RETRIES = 6


def matmul(a: Array, b: Array) -> Array:
    """a @ b at full precision: GPUs otherwise round float32 operands to TF32."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def default_jitter() -> float:
    """Jitter relative to the mean of the diagonal that suits the floating-point type in force."""
    return 1e-8 if jnp.zeros(()).dtype == jnp.float64 else 1e-5


class InverseFactor(NamedTuple):
    """W = L^{-1} with L L^T = K + jitter, and how often the jitter had to grow tenfold."""

    inverse: Float[Array, "m m"]
    retries: Int[Array, ""]


def inverse_cholesky(K: Float[Array, "m m"], jitter: float) -> InverseFactor:
    """Invert the Cholesky factor of K + jitter * mean(diag K) * I.

    A factorisation that fails is repeated, inside jit, with ten times the jitter. The gradient needs no
    factorisation: with W = L^{-1} and Phi the lower triangle with its diagonal halved,

        dW = -Phi(W dK W^T) W    and so    K_bar = -W^T Phi(W_bar W^T) W, symmetrised.
    """
    inverse, retries = _inverse_cholesky(K, jitter)
    return InverseFactor(inverse, retries)


def _jittered(K: Array, jitter: float, retries: Array) -> Array:
    amount = jitter * 10.0 ** retries.astype(K.dtype) * jnp.mean(jnp.diag(K))
    return K + amount * jnp.eye(K.shape[0], dtype=K.dtype)


def _factorise(K: Array, jitter: float) -> tuple[Array, Array]:
    def attempt(retries: Array) -> Array:
        L = jnp.linalg.cholesky(_jittered(K, jitter, retries), symmetrize_input=False)
        return jax.scipy.linalg.solve_triangular(L, jnp.eye(K.shape[0], dtype=K.dtype), lower=True)

    def failed(carry: tuple[Array, Array]) -> Array:
        inverse, retries = carry
        return ~jnp.all(jnp.isfinite(inverse)) & (retries < MAX_RETRIES)

    def retry(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        retries = carry[1] + 1
        return attempt(retries), retries

    start = jnp.zeros((), jnp.int32)
    inverse, retries = lax.while_loop(failed, retry, (attempt(start), start))
    return inverse, retries


_inverse_cholesky = jax.custom_vjp(_factorise, nondiff_argnums=(1,))


def _forward(K: Array, jitter: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    inverse, retries = _factorise(K, jitter)
    return (inverse, retries), (inverse, retries)


def _backward(jitter: float, residuals: tuple[Array, Array], cotangents: tuple[Array, Array]) -> tuple[Array]:
    inverse, retries = residuals
    halved = jnp.tril(matmul(cotangents[0], inverse.T))
    halved = halved - 0.5 * jnp.diag(jnp.diag(halved))
    K_bar = -matmul(inverse.T, matmul(halved, inverse))
    K_bar = 0.5 * (K_bar + K_bar.T)
    relative = jitter * 10.0 ** retries.astype(K_bar.dtype)
    through_jitter = relative * jnp.mean(jnp.diag(K_bar))
    return (K_bar + through_jitter * jnp.eye(K_bar.shape[0], dtype=K_bar.dtype),)


_inverse_cholesky.defvjp(_forward, _backward)
