"""What checks annotations in tests: beartype, as strict as mypy, but for three places."""

from collections.abc import Callable
from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

CHECKED_LATER = ("DeepGPEstimator.__init__",)
"""scikit-learn asks that a constructor take anything, and that ``fit`` complain."""

_checked = beartype(
    conf=BeartypeConf(
        is_pep484_tower=True,  # an int will do for a float, as it does for mypy
        hint_overrides=FrozenDict({Self: Any}),  # the import hook decorates methods, which know no Self
    )
)


def check(function: Callable) -> Callable:
    """``function``, whose arguments and result must be what its annotations say."""
    return function if function.__qualname__ in CHECKED_LATER else _checked(function)
