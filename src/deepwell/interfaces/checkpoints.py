"""Checkpoints: the whole state of a fit on disk, so that the same command goes on where the last one stopped.

A folder holds the newest checkpoint, the one before it, and a lock. A checkpoint is written to a temporary file,
flushed to disk and renamed, by a thread of its own; a write that fails warns once and is tried again later.
"""

import hashlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from deepwell.data.errors import InputError
from deepwell.inference.run import Keeper, Place
from deepwell.interfaces.containers import DeepwellFileError, read_container, write_container

KIND, FORMAT = "checkpoint", 1
NEWEST, BEFORE, LOCK = "newest.checkpoint", "before.checkpoint", "lock"
EVERY = 60.0
"""Seconds between checkpoints, rounded up to the next chunk."""


class Checkpoints:
    """The checkpoints of one fit, known by ``identity``: everything that decides the result, in words."""

    def __init__(self, folder: Path, identity: dict[str, Any], every: float) -> None:
        self.folder = folder
        self.identity = identity
        self.every = every
        self._written = time.monotonic()
        self._writer: threading.Thread | None = None
        self._warned = False

    def restore(self, template: Callable[[int], PyTree]) -> tuple[Place, PyTree] | None:
        """The newest checkpoint that can be read, or None if there is none; another fit's is refused."""
        for name in (NEWEST, BEFORE):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                return self._read(path, template)
            except DeepwellFileError as error:
                warnings.warn(f"{error}; going on from the checkpoint before it, or from the start", stacklevel=2)
        return None

    def _read(self, path: Path, template: Callable[[int], PyTree]) -> tuple[Place, PyTree]:
        described, tensors = read_container(path, KIND, (FORMAT,))
        try:
            self._require_same_fit(dict(described["identity"]))
            phase, done = int(described["phase"]), int(described["done"])
            expected = template(phase)
            leaves, structure = jax.tree.flatten(expected)
            found = [tensors[f"state.{i}"] for i in range(len(leaves))]
            for array, leaf in zip(found, leaves, strict=True):
                if array.shape != leaf.shape or array.dtype != leaf.dtype:
                    raise DeepwellFileError(f"{path} is damaged: {array.shape} where {leaf.shape} belongs")
            iterations = [int(i) for i in described["iterations"]]
            trace = list(zip(iterations, tensors["trace"], strict=True))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InputError | DeepwellFileError):
                raise
            raise DeepwellFileError(f"{path} is damaged: {error!r}") from error
        return Place(phase, done, trace), jax.tree.unflatten(structure, [jnp.asarray(array) for array in found])

    def _require_same_fit(self, found: dict[str, Any]) -> None:
        for name, value in json.loads(json.dumps(self.identity)).items():
            if found.get(name) != value:
                raise InputError(
                    f"the checkpoint in {self.folder} is of another fit: {_difference(name, found.get(name), value)}; "
                    "use another folder, or delete this one to start again"
                )

    def keep(self, place: Place, state: PyTree) -> None:
        """Write a checkpoint if it is time, without waiting for the disk."""
        busy = self._writer is not None and self._writer.is_alive()
        if not busy and time.monotonic() - self._written >= self.every:
            self.write(place, state)

    def write(self, place: Place, state: PyTree) -> None:
        """Copy the state now and write it in another thread."""
        self.wait()
        self._written = time.monotonic()
        tensors = {f"state.{i}": np.array(leaf) for i, leaf in enumerate(jax.tree.leaves(jax.device_get(state)))}
        tensors["trace"] = np.array([fit for _, fit in place.trace])
        described = {
            "identity": self.identity,
            "phase": place.phase,
            "done": place.done,
            "iterations": [done for done, _ in place.trace],
        }
        self._writer = threading.Thread(target=self._write, args=(described, tensors))
        self._writer.start()

    def _write(self, described: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        newest, before = self.folder / NEWEST, self.folder / BEFORE
        try:
            write_container(newest, KIND, FORMAT, described, tensors, keep_old_as=before)
        except DeepwellFileError as error:
            if not self._warned:
                warnings.warn(f"no checkpoint: {error}; the fit goes on, and will try again", stacklevel=2)
            self._warned = True

    def wait(self) -> None:
        """Until the last write is done."""
        if self._writer is not None:
            self._writer.join()


def _difference(name: str, found: Any, now: Any) -> str:
    """The part that differs, in words."""
    if isinstance(found, dict) and isinstance(now, dict):
        part = next((key for key in {**found, **now} if found.get(key) != now.get(key)), "")
        if name == "columns":
            both = part in found and part in now
            return f"the values of column {part!r} differ" if both else f"only one of them has a column {part!r}"
        return f"{part} was {found.get(part)!r} and is now {now.get(part)!r}"
    return f"{name} was {found!r} and is now {now!r}"


def column_digests(names: list[str], matrix: np.ndarray) -> dict[str, str]:
    """A short digest of each column's values."""
    columns = np.ascontiguousarray(matrix.T)
    pairs = zip(names, columns, strict=True)
    return {name: hashlib.sha256(column.tobytes()).hexdigest()[:16] for name, column in pairs}


@contextmanager
def checkpointing(
    folder: str | Path | None, identity: Callable[[], dict[str, Any]], every: float | None, stop: Callable[[], bool]
) -> Iterator[Keeper]:
    """A keeper of the run: writes checkpoints to ``folder`` if there is one, and says when to stop."""
    if folder is None:
        yield Keeper(lambda template: None, lambda place, state: None, stop)
        return
    seconds = EVERY if every is None else every
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        raise InputError(f"every={every!r} must be a number of seconds, 0 or more")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the checkpoint folder {path}: {error.strerror}") from error
    with _locked(path):
        checkpoints = Checkpoints(path, identity(), seconds)
        newest: list[tuple[Place, PyTree]] = []

        def keep(place: Place, state: PyTree) -> None:
            newest[:] = [(place, state)]
            checkpoints.keep(place, state)

        try:
            yield Keeper(checkpoints.restore, keep, stop)
        finally:
            if newest:
                checkpoints.write(*newest[0])
            checkpoints.wait()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process a folder; the lock is the operating system's, so a killed process leaves none behind."""
    try:
        import fcntl
    except ImportError:  # no such locks here
        yield
        return
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:  # a folder that cannot be written to is told of when a checkpoint is
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InputError(f"another process is using the checkpoint folder {folder}") from None
    try:
        yield
    finally:
        os.close(handle)
