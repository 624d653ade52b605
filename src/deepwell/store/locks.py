"""Locks between processes: the operating system's, so that a killed process leaves none behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether the file ``path`` could be locked for the time of the block; ``wait`` until it can.

    Where there are no such locks, or the folder cannot be written to, everyone gets it; a file that another user has
    made can be locked all the same.
    """
    try:
        import fcntl

        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError:
            handle = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):
        yield True
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            mine = True
        except BlockingIOError:
            mine = False
        except OSError:  # a filesystem without locks
            mine = True
        yield mine
    finally:
        os.close(handle)
