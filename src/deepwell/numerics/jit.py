"""``jax.jit`` with compiler options for CPUs, where XLA's defaults take twice as long to compile and gain no speed."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")

SHORT_RUN: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
"""Compiles twice as fast. Programs that are mostly exponentials, not matrix products, run at half the speed."""
LONG_RUN: dict[str, Any] = {"xla_backend_optimization_level": 1}


@functools.cache
def _accepted_options(platform: str, long_run: bool) -> dict[str, Any] | None:
    """The options for this platform that the installed XLA accepts, which depends on its version."""

    def accepted(name: str, value: Any) -> bool:
        try:
            jax.jit(lambda x: x, compiler_options={name: value}).lower(0.0).compile()
        except jax.errors.JaxRuntimeError:
            return False
        return True

    if platform != "cpu":
        return None
    options = LONG_RUN if long_run else SHORT_RUN
    return {name: value for name, value in options.items() if accepted(name, value)}


def quick_jit(function: Callable[P, T], static_argnums: tuple[int, ...] = (), long_run: bool = False) -> Callable[P, T]:
    """Compile ``function`` for the default device. Its first call on a platform chooses the options.

    ``long_run``: the program will run for more than a few seconds, so speed matters more than compilation time.
    """

    @functools.cache
    def compiled(platform: str) -> Callable[P, T]:
        options = _accepted_options(platform, long_run)
        return jax.jit(function, static_argnums=static_argnums, compiler_options=options)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        device = jax.config.jax_default_device  # type: ignore[attr-defined]
        platform = jax.default_backend() if device is None else getattr(device, "platform", device)
        return compiled(platform)(*args, **kwargs)

    return call
