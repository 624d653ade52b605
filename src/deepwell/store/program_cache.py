"""Compiled programs are kept on disk between commands, so that a second fit of one shape starts at once.

JAX keeps them; the command line tells it where and how much, before JAX is imported. A folder that the user names by
``JAX_COMPILATION_CACHE_DIR`` is left alone, and ``JAX_ENABLE_COMPILATION_CACHE=false`` turns all of it off.
"""

import os
from pathlib import Path

from deepwell.errors import is_installed
from deepwell.store.locks import claimed

DEFAULTS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_COMPILATION_CACHE_MAX_SIZE": str(2**30),
}
"""Programs that take a tenth of a second to compile, 1 GiB of them: those used longest ago go first."""


def keep_programs() -> Path | None:
    """Tell JAX where to keep programs; returns the folder, or None if the user has chosen one or none can be used."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or not is_installed("filelock"):
        return None
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepwell" / "programs"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, as in containers
        return None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    _delete_undated(folder)
    return folder


def _delete_undated(folder: Path) -> None:
    """Delete programs whose time of last use is not on file: JAX 0.10 adds no program to a folder that has one.

    A process killed as it wrote a program leaves one, and so did versions of deepwell without JAX's limit. The lock is
    JAX's own.
    """
    with claimed(folder / ".lockfile") as mine:
        if mine:
            for program in folder.glob("*-cache"):
                if not program.with_name(f"{program.name.removesuffix('-cache')}-atime").exists():
                    program.unlink(missing_ok=True)
