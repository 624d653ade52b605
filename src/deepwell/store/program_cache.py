"""Compiled programs are kept on disk between commands, so that a second fit of one shape starts at once.

JAX does the work; here it is told where, before it is imported. A folder named by ``JAX_COMPILATION_CACHE_DIR`` is the
user's own affair, and ``JAX_ENABLE_COMPILATION_CACHE=false`` turns all of it off.
"""

import os
from contextlib import suppress
from pathlib import Path

LARGEST = 2**30
"""Bytes kept; beyond, what was used least recently goes."""
WORTH_KEEPING = "0.1"
"""Seconds of compilation."""


def keep_programs() -> Path | None:
    """Tell JAX where to keep programs; returns the folder, or None if the user has chosen one or none can be used."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return None
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepwell" / "programs"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, as in containers
        return None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", WORTH_KEEPING)
    forget_oldest(folder, LARGEST)
    return folder


def forget_oldest(folder: Path, largest: int) -> None:
    """Delete files, those used longest ago first, until the rest holds at most ``largest`` bytes."""
    with suppress(OSError):  # another process may be at it too
        files = sorted(((path.stat(), path) for path in folder.iterdir()), key=lambda found: _last_used(found[0]))
        excess = sum(status.st_size for status, _ in files) - largest
        for status, path in files:
            if excess <= 0:
                break
            path.unlink()
            excess -= status.st_size


def _last_used(status: os.stat_result) -> float:
    return max(status.st_atime, status.st_mtime)
