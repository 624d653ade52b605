"""Where a row comes from: versions, commit, device, data."""

import hashlib
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import deepwell


def provenance() -> dict[str, Any]:
    """Device, versions, and the commit if the package runs from a git checkout."""
    kind = next(iter(jnp.zeros(()).devices())).device_kind
    versions = {"deepwell": deepwell.__version__, "jax": jax.__version__, "numpy": np.__version__}
    return {"device": kind, "versions": versions, "commit": commit()}


@cache
def commit() -> str | None:
    """The commit of the checkout that holds this package, with ``+`` if tracked files have changed since."""
    package = Path(deepwell.__file__).parent

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(package), *arguments]
        try:
            finished = subprocess.run(command, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return finished.stdout.strip() if finished.returncode == 0 else None

    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head, changed = git("rev-parse", "--short=12", "HEAD"), git("status", "--porcelain", "-uno", ".")
    return None if head is None else head + ("+" if changed else "")


def data_hash(X: np.ndarray, y: np.ndarray) -> str:
    """A hash of all values, inputs then targets."""
    digest = hashlib.sha256(np.ascontiguousarray(X, np.float64).tobytes())
    labels = y if y.dtype.kind in "fiu" else y.astype(str)
    digest.update(np.ascontiguousarray(labels).tobytes())
    return digest.hexdigest()[:16]
