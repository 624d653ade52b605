"""Locks between processes: the operating system's, which a killed process cannot leave behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepwell.errors import require


@contextmanager
def claimed(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether the file ``path`` is locked for this block alone; ``wait`` until it is.

    A file that another user made is locked through a read-only descriptor. Everyone gets the lock where there can be
    none: in a folder that cannot be written to, and on a filesystem without locks.
    """
    require("filelock", "a lock between processes")
    from filelock import lock_descriptor

    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError:
            descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        yield True
        return
    try:
        try:
            mine = lock_descriptor(descriptor, blocking=wait)
        except OSError:
            mine = True
        yield mine
    finally:
        os.close(descriptor)
