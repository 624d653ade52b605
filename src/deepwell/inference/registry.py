"""Every inference method by its name; a method of one's own is known once it is registered."""

from typing import Any

from deepwell.errors import InputError
from deepwell.inference import dsvi, full_bayes, moving_window, nuts, plain_mcem
from deepwell.inference.method import Method

_METHODS: dict[str, Method[Any]] = {}


def register(method: Method[Any]) -> Method[Any]:
    """Make a method known to ``inference=`` by its name, in this process."""
    if method.name in _METHODS:
        raise InputError(f"there is an inference method {method.name!r} already: choose another name")
    _METHODS[method.name] = method
    return method


def unregister(name: str) -> None:
    """Forget a method."""
    del _METHODS[name]


def method_names() -> tuple[str, ...]:
    """In the order of their registration."""
    return tuple(_METHODS)


def method_named(name: Any) -> Method[Any]:
    """The method, or an error that names those there are."""
    if not isinstance(name, str) or name not in _METHODS:
        raise InputError(f"unknown inference {name!r}: choose from {', '.join(_METHODS)}")
    return _METHODS[name]


for _method in (
    moving_window.SGHMC,
    moving_window.NAIVE,
    plain_mcem.MCEM,
    full_bayes.SGHMC_BAYES,
    dsvi.DSVI,
    dsvi.DECOUPLED,
    full_bayes.BNN,
    nuts.NUTS,
):
    register(_method)
