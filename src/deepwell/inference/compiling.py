"""``jax.jit`` that compiles quickly on a CPU, where XLA's defaults double the wait for no speed."""

import functools
from collections.abc import Callable
from typing import Any

import jax

CPU_OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


@functools.cache
def _accepted_options(platform: str) -> dict[str, Any] | None:
    """The options for this platform that the installed version of XLA knows; they come and go."""

    def accepted(name: str, value: Any) -> bool:
        try:
            jax.jit(lambda x: x, compiler_options={name: value}).lower(0.0).compile()
        except jax.errors.JaxRuntimeError:
            return False
        return True

    if platform != "cpu":
        return None
    return {name: value for name, value in CPU_OPTIONS.items() if accepted(name, value)}


def quick_jit(function: Callable, static_argnums: tuple[int, ...] = ()) -> Callable:
    """Compile ``function`` for the default device, the platform's options chosen at the first call."""

    @functools.cache
    def compiled(platform: str) -> Callable:
        return jax.jit(function, static_argnums=static_argnums, compiler_options=_accepted_options(platform))

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        device = jax.config.jax_default_device  # type: ignore[attr-defined]
        platform = jax.default_backend() if device is None else getattr(device, "platform", device)
        return compiled(platform)(*args)

    return call
