"""JAX's usual dtype promotion for code of others, which mixes integers with floats."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def usual_promotion(function: Callable[P, T]) -> Callable[P, T]:
    """``function`` as it is, also where ``jax_numpy_dtype_promotion`` is strict: optax and blackjax need that."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.numpy_dtype_promotion("standard"):
            return function(*args, **kwargs)

    return call
