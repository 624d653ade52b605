"""Small dense linear algebra that stays finite in float32 and differentiates by matrix products."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

MAX_RETRIES = 8
TINY = 1e-12
"""Added to the mean of a diagonal, so that jitter is positive where the kernel is zero (a linear kernel at 0)."""


def matmul(a: Array, b: Array) -> Array:
    """a @ b at full precision: GPUs otherwise round float32 operands to TF32."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def default_jitter() -> float:
    """The jitter that suits the default floating-point type, relative to the mean of the diagonal."""
    return 1e-8 if jnp.zeros(()).dtype == jnp.float64 else 1e-5


class InverseFactor(NamedTuple):
    """W = L^{-1} with L L^T = K + jitter I, and how often the jitter had to grow tenfold."""

    inverse: Float[Array, "m m"]
    retries: Int[Array, ""]


def inverse_cholesky(K: Float[Array, "m m"], jitter: float) -> InverseFactor:
    """Invert the Cholesky factor of K + jitter * mean(diag K) * I.

    A factorisation that fails is repeated with ten times the jitter, inside jit. The gradient needs no factorisation:
    with W = L^{-1} and Phi the lower triangle with its diagonal halved,

        dW = -Phi(W dK W^T) W    and so    K_bar = -W^T Phi(W_bar W^T) W, symmetrised.
    """
    inverse, retries = _inverse_cholesky(K, jitter)
    return InverseFactor(inverse, retries)


def inverse_cholesky_all(grams: Sequence[Float[Array, "_ _"]], jitters: Sequence[float]) -> tuple[InverseFactor, ...]:
    """``inverse_cholesky`` of several matrices, those of one size and jitter as one batch."""
    factors: dict[int, InverseFactor] = {}
    kinds = [(len(gram), jitter) for gram, jitter in zip(grams, jitters, strict=True)]
    for kind in dict.fromkeys(kinds):
        members = [i for i, other in enumerate(kinds) if other == kind]
        batch = jax.vmap(inverse_cholesky, (0, None))(jnp.stack([grams[i] for i in members]), kind[1])
        factors |= {i: jax.tree.map(lambda x, place=place: x[place], batch) for place, i in enumerate(members)}
    return tuple(factors[i] for i in range(len(grams)))


def _jittered(K: Array, jitter: float, retries: Array) -> Array:
    amount = _relative_jitter(jitter, retries, K.dtype) * (jnp.mean(jnp.diag(K)) + TINY)
    return K + amount * jnp.eye(K.shape[0], dtype=K.dtype)


def _relative_jitter(jitter: float, retries: Array, dtype: jnp.dtype) -> Array:
    return jnp.asarray([jitter * 10.0**n for n in range(MAX_RETRIES + 1)], dtype)[retries]


def _factorise(K: Array, jitter: float) -> tuple[Array, Array]:
    def attempt(retries: Array) -> Array:
        L = jnp.linalg.cholesky(_jittered(K, jitter, retries), symmetrize_input=False)
        return jax.scipy.linalg.solve_triangular(L, jnp.eye(K.shape[0], dtype=K.dtype), lower=True)

    def failed(carry: tuple[Array, Array]) -> Array:
        inverse, retries = carry
        return ~jnp.isfinite(jnp.sum(inverse)) & (retries < MAX_RETRIES)

    def retry(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        retries = carry[1] + 1
        return attempt(retries), retries

    return lax.while_loop(failed, retry, (jnp.full_like(K, jnp.nan), jnp.asarray(-1, jnp.int32)))


_inverse_cholesky = jax.custom_vjp(_factorise, nondiff_argnums=(1,))


def _forward(K: Array, jitter: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    inverse, retries = _factorise(K, jitter)
    return (inverse, retries), (inverse, retries)


def _backward(jitter: float, residuals: tuple[Array, Array], cotangents: tuple[Array, Any]) -> tuple[Array]:
    inverse, retries = residuals
    halved = jnp.tril(matmul(cotangents[0], inverse.T))
    halved = halved - 0.5 * jnp.diag(jnp.diag(halved))
    K_bar = -matmul(inverse.T, matmul(halved, inverse))
    K_bar = 0.5 * (K_bar + K_bar.T)
    through_jitter = _relative_jitter(jitter, retries, K_bar.dtype) * jnp.mean(jnp.diag(K_bar))
    return (K_bar + through_jitter * jnp.eye(K_bar.shape[0], dtype=K_bar.dtype),)


_inverse_cholesky.defvjp(_forward, _backward)
