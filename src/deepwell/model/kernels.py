"""Covariance functions. Positive parameters are kept as logarithms; a kernel is a pytree of arrays."""

import abc
import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from deepwell.errors import InputError
from deepwell.model.priors import lengthscale_prior, variance_prior
from deepwell.numerics.linalg import matmul


class Kernel(eqx.Module):
    """k(x, z) for rows of X and Z. A subclass needs ``__call__`` alone; ``diag`` may be given a closed form."""

    @abc.abstractmethod
    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """The matrix [k(x_i, z_j)]."""

    def diag(self, X: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The vector [k(x_i, x_i)]."""
        return jax.vmap(lambda x: self(x[None], x[None])[0, 0])(X)

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum((self, other))

    def __mul__(self, other: "Kernel") -> "Product":
        return Product((self, other))


class Stationary(Kernel):
    """k(x, z) = variance * correlation(r^2) with r^2 = sum_d (x_d - z_d)^2 / lengthscale_d^2."""

    log_lengthscales: eqx.AbstractVar[Float[Array, " d"]]
    log_variance: eqx.AbstractVar[Float[Array, ""]]
    correlation: eqx.AbstractClassVar[Callable[[Array], Array]]
    spectral_degrees: eqx.AbstractClassVar[int | None]
    """Degrees of freedom of the Student t that the frequencies of unit lengthscales follow; None: they are normal."""

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        r2 = _squared_distances(X * jnp.exp(-self.log_lengthscales), Z * jnp.exp(-self.log_lengthscales))
        return jnp.exp(self.log_variance) * type(self).correlation(r2)

    def diag(self, X: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.broadcast_to(jnp.exp(self.log_variance), X.shape[:1])


def _squared_distances(X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """|x - z|^2 as one matrix product, (x, |x|^2, 1) . (-2 z, 1, |z|^2); what is within its rounding error is zero."""
    squares = jnp.sum(Z**2, 1, keepdims=True)
    left = jnp.concatenate([X, jnp.sum(X**2, 1, keepdims=True), jnp.ones_like(X[:, :1])], 1)
    right = jnp.concatenate([-2.0 * Z, jnp.ones_like(squares), squares], 1)
    r2 = matmul(left, right.T)
    rounding = jnp.where(r2 > 16.0 * jnp.finfo(r2.dtype).eps * squares[:, 0], 0.0, r2)
    return r2 - lax.stop_gradient(rounding)


def _root(r2: Array) -> Array:
    """sqrt(r2) whose gradient at zero is zero rather than infinite."""
    positive = r2 > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, r2, 1.0)), 0.0)


def _squared_exponential(r2: Array) -> Array:
    return jnp.exp(-0.5 * r2)


def _matern12(r2: Array) -> Array:
    return jnp.exp(-_root(r2))


def _matern32(r2: Array) -> Array:
    r = 3.0**0.5 * _root(r2)
    return (1.0 + r) * jnp.exp(-r)


def _matern52(r2: Array) -> Array:
    r = 5.0**0.5 * _root(r2)
    return (1.0 + r + r**2 / 3.0) * jnp.exp(-r)


@final
class SquaredExponential(Stationary):
    """correlation = exp(-r^2 / 2), one lengthscale a dimension."""

    log_lengthscales: Annotated[Float[Array, " d"], lengthscale_prior]
    log_variance: Annotated[Float[Array, ""], variance_prior]
    correlation: ClassVar[Callable[[Array], Array]] = staticmethod(_squared_exponential)
    spectral_degrees: ClassVar[int | None] = None


@final
class Matern12(Stationary):
    """correlation = exp(-r)."""

    log_lengthscales: Annotated[Float[Array, " d"], lengthscale_prior]
    log_variance: Annotated[Float[Array, ""], variance_prior]
    correlation: ClassVar[Callable[[Array], Array]] = staticmethod(_matern12)
    spectral_degrees: ClassVar[int | None] = 1


@final
class Matern32(Stationary):
    """correlation = (1 + sqrt(3) r) exp(-sqrt(3) r)."""

    log_lengthscales: Annotated[Float[Array, " d"], lengthscale_prior]
    log_variance: Annotated[Float[Array, ""], variance_prior]
    correlation: ClassVar[Callable[[Array], Array]] = staticmethod(_matern32)
    spectral_degrees: ClassVar[int | None] = 3


@final
class Matern52(Stationary):
    """correlation = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)."""

    log_lengthscales: Annotated[Float[Array, " d"], lengthscale_prior]
    log_variance: Annotated[Float[Array, ""], variance_prior]
    correlation: ClassVar[Callable[[Array], Array]] = staticmethod(_matern52)
    spectral_degrees: ClassVar[int | None] = 5


@final
class Linear(Kernel):
    """k(x, z) = sum_d variance_d x_d z_d."""

    log_variance: Annotated[Float[Array, " d"], variance_prior]

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return matmul(X * jnp.exp(self.log_variance), Z.T)

    def diag(self, X: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.sum(jnp.exp(self.log_variance) * X**2, 1)


@final
class Constant(Kernel):
    """k(x, z) = variance; times another kernel it scales it."""

    log_variance: Annotated[Float[Array, ""], variance_prior]

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.broadcast_to(jnp.exp(self.log_variance), (len(X), len(Z)))


@final
class Sum(Kernel):
    """k(x, z) = sum_i k_i(x, z)."""

    kernels: tuple[Kernel, ...]

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.sum(jnp.stack([k(X, Z) for k in self.kernels]), 0)

    def diag(self, X: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.sum(jnp.stack([k.diag(X) for k in self.kernels]), 0)


@final
class Product(Kernel):
    """k(x, z) = prod_i k_i(x, z)."""

    kernels: tuple[Kernel, ...]

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        return jnp.prod(jnp.stack([k(X, Z) for k in self.kernels]), 0)

    def diag(self, X: Float[Array, "n d"]) -> Float[Array, " n"]:
        return jnp.prod(jnp.stack([k.diag(X) for k in self.kernels]), 0)


STATIONARY: dict[str, type[Stationary]] = {
    "se": SquaredExponential,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
}
KERNEL_NAMES = (*STATIONARY, "linear")
LONGEST_EXPRESSION = 200
"""Characters of names joined by + and * that are accepted."""


def check_kernel(expression: Any) -> None:
    """Refuse what ``make_kernel`` cannot build."""
    if isinstance(expression, Kernel):
        return
    if len(str(expression)) > LONGEST_EXPRESSION:
        raise InputError(f"the kernel {str(expression)[:40]!r}... must have at most {LONGEST_EXPRESSION} characters")
    try:
        make_kernel(expression, 1, 1.0, 1.0)
    except (ValueError, AttributeError) as error:
        choices = ", ".join(KERNEL_NAMES)
        raise InputError(f"unknown kernel {expression!r}: join names from {choices} by + and *") from error


def make_kernel(expression: str | Kernel, dimension: int, variance: float, lengthscale: float) -> Kernel:
    """Build a kernel from names joined by ``+`` and ``*`` (``*`` binds tighter), e.g. ``"se + linear"``.

    In a product only the first factor carries ``variance``; the others start at 1. A kernel object stays as it is if
    ``variance`` is 1, and is otherwise multiplied by a ``Constant`` of this variance.
    """
    if isinstance(expression, Kernel):
        return expression if variance == 1.0 else Constant(_filled((), math.log(variance))) * expression
    terms = [_make_product(term, dimension, variance, lengthscale) for term in expression.split("+")]
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _make_product(expression: str, dimension: int, variance: float, lengthscale: float) -> Kernel:
    names = [name.strip() for name in expression.split("*")]
    factors = [_make_atom(name, dimension, variance if i == 0 else 1.0, lengthscale) for i, name in enumerate(names)]
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


def _make_atom(name: str, dimension: int, variance: float, lengthscale: float) -> Kernel:
    if name == "linear":
        return Linear(_filled((dimension,), math.log(variance / dimension)))
    if name not in STATIONARY:
        raise ValueError(f"unknown kernel {name!r}: choose from {', '.join(KERNEL_NAMES)}")
    return STATIONARY[name](_filled((dimension,), math.log(lengthscale)), _filled((), math.log(variance)))


def _filled(shape: tuple[int, ...], value: float) -> Array:
    return jnp.asarray(np.full(shape, value), float)
