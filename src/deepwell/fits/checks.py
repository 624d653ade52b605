"""What a setting's value must be; each check is given the setting's name and value, and names both in its error."""

from collections.abc import Callable, Sequence
from typing import Any

from deepwell.errors import InputError

Check = Callable[[str, Any], None]


def whole(least: int = 1, most: int | None = None) -> Check:
    """A whole number in these bounds."""
    kind = {0: "an integer, 0 or more", 1: "a positive integer"}[least]

    def check(name: str, value: Any) -> None:
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
            raise InputError(f"{name}={value!r} must be {kind}")
        if most is not None and value > most:
            raise InputError(f"{name}={value!r} must be at most {most}")

    return check


def positive(name: str, value: Any) -> None:
    """A positive, finite number."""
    if not _is_number(value) or not 0.0 < value < float("inf"):
        raise InputError(f"{name}={value!r} must be a positive number")


def fraction(name: str, value: Any) -> None:
    """Strictly between 0 and 1."""
    if not _is_number(value) or not 0.0 < value < 1.0:
        raise InputError(f"{name}={value!r} must lie between 0 and 1")


def below_one(name: str, value: Any) -> None:
    """A positive number below 1."""
    positive(name, value)
    if value >= 1.0:
        raise InputError(f"{name}={value!r} must be below 1")


def flag(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r} must be True or False")


def one_of(options: Callable[[], Sequence[str]]) -> Check:
    """One of these words."""

    def check(name: str, value: Any) -> None:
        if value not in options():
            raise InputError(f"unknown {name} {value!r}: choose from {', '.join(options())}")

    return check


def names(name: str, value: Any) -> None:
    """A list of text."""
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{name}={value!r} must be a list of parameter names or patterns")


def many(check: Check, what: str) -> Check:
    """A list of values that each pass the check."""

    def check_all(name: str, values: Any) -> None:
        if not isinstance(values, tuple):
            raise InputError(f"{name}={values!r} must be a list of {what}")
        for value in values:
            check(name, value)

    return check_all


def one_or_many(check: Check) -> Check:
    """A value that passes the check, or a list of them."""

    def check_each(name: str, values: Any) -> None:
        for value in values if isinstance(values, tuple) else (values,):
            check(name, value)

    return check_each


def schedule(check: Check) -> Check:
    """A value that passes the check, or one or more of them."""

    def check_knots(name: str, values: Any) -> None:
        if values == ():
            raise InputError(f"{name}=() must have at least one value")
        one_or_many(check)(name, values)

    return check_knots


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
