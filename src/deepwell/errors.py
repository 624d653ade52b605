"""The error for input that cannot be used, and for a package that is not installed."""

from importlib.util import find_spec

EXTRAS = {"arviz": "arviz", "blackjax": "nuts", "pyarrow": "parquet", "rdkit": "molecules"}
"""The extra of deepwell that installs an optional package."""
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""What pip calls a package whose import has another name."""


class InputError(ValueError):
    """Input that cannot be used; the message is one sentence that names the column, value or option."""


def is_installed(package: str) -> bool:
    """Whether the package could be imported."""
    return find_spec(package) is not None


def require(package: str, purpose: str, otherwise: str = "") -> None:
    """Raise an ``InputError`` that says how to install the package that ``purpose`` needs, if it is missing.

    ``otherwise`` is what to do instead of installing it.
    """
    if not is_installed(package):
        name = DISTRIBUTIONS.get(package, package)
        install = f"'deepwell[{EXTRAS[package]}]'" if package in EXTRAS else name
        raise InputError(f"{purpose} needs {name}: pip install {install}{otherwise and f', or {otherwise}'}")
