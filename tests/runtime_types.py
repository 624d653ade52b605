"""What checks annotations in tests: beartype, told to read them as mypy does."""

from collections.abc import Callable
from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

CHECK_THEMSELVES = {
    "deepwell.fits.fit.fit",
    "deepwell.fits.presets.make_settings",
    "deepwell.fits.settings.Settings.__init__",
    "deepwell.doors.estimator.DeepGPEstimator.__init__",
}
"""What users call with anything: it names the bad value itself; scikit-learn's constructors leave that to ``fit``."""

_checked = beartype(
    conf=BeartypeConf(
        is_pep484_tower=True,  # an int will do for a float, as it does for mypy
        hint_overrides=FrozenDict({Self: Any}),  # the import hook decorates methods, which know no Self
    )
)


def check(function: Callable) -> Callable:
    """``function``, whose arguments and result must be what its annotations say."""
    checks_itself = f"{function.__module__}.{function.__qualname__}" in CHECK_THEMSELVES
    return function if checks_itself else _checked(function)
