"""Checkpoints: the whole state of a fit on disk, so that the same call goes on where the last one stopped.

A folder holds the newest checkpoint, the one before it, and a lock. A thread of its own writes each checkpoint to a
temporary file, flushes it to disk and renames it. A write that fails warns once and is tried again later.
"""

import hashlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from deepwell.errors import InputError
from deepwell.inference.driver import NO_HOOKS, Hooks, IsChunkEnd, Position, StateLike
from deepwell.store.locks import claimed
from deepwell.store.tensor_file import DeepwellFileError, read_tensor_file, write_tensor_file

KIND, FORMAT = "checkpoint", 1
NEWEST, BEFORE, LOCK = "newest.checkpoint", "before.checkpoint", "lock"
EVERY = 60.0
"""Seconds between checkpoints, rounded up to the next chunk."""


class Checkpoints:
    """The checkpoints of one fit. ``identity`` is everything that decides its result, as JSON."""

    def __init__(self, folder: Path, identity: dict[str, Any], every: float) -> None:
        self.folder = folder
        self.identity = identity
        self.every = every
        self._written = time.monotonic()
        self._writer: threading.Thread | None = None
        self._warned = False
        self._newest = (-1, -1)  # phase and iteration of the newest checkpoint
        for leftover in folder.glob(f".{NEWEST}.*"):  # of a process killed while it wrote
            with suppress(OSError):
                leftover.unlink()

    def restore(self, is_end: IsChunkEnd, state_like: StateLike) -> tuple[Position, PyTree] | None:
        """The newest checkpoint that can be read, or None if there is none. One of another fit is an error."""
        for name in (NEWEST, BEFORE):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                position, tensors = self._read(path, is_end)
                return position, _state(path, tensors, state_like(position.phase))
            except DeepwellFileError as error:
                warnings.warn(f"{error}; going on from the checkpoint before it, or from the start", stacklevel=2)
                with suppress(OSError):  # out of the way, or it would become the checkpoint before the next one
                    path.replace(self.folder / f"unread.{name}")
        return None

    def _read(self, path: Path, is_end: IsChunkEnd) -> tuple[Position, dict[str, np.ndarray]]:
        description, tensors = read_tensor_file(path, KIND, (FORMAT,))
        self._require_same_fit(description.get("identity"), path)
        try:
            phase, done = int(description["phase"]), int(description["done"])
            iterations = [int(i) for i in description["iterations"]]
            seconds = float(description.get("seconds", 0.0))
            position = Position(phase, done, list(zip(iterations, tensors["trace"], strict=True)), seconds)
            if not 0.0 <= seconds < float("inf"):
                raise ValueError(f"it cannot have taken {seconds} seconds")
            if not is_end(phase, done):
                raise ValueError(f"there is no iteration {done} of phase {phase} to go on from")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DeepwellFileError(f"{path} is damaged: {error!r:.300}") from error
        return position, tensors

    def _require_same_fit(self, identity: Any, path: Path) -> None:
        if not isinstance(identity, dict):
            raise DeepwellFileError(f"{path} is damaged: it does not say which fit it is of")
        ours = json.loads(json.dumps(self.identity))
        for name in {**ours, **identity}:
            was, now = identity.get(name), ours.get(name)
            if was != now:
                raise InputError(
                    f"the checkpoint in {self.folder} is of another fit: {_difference(name, was, now)}; "
                    "use another folder, or delete this one to start again"
                )

    def keep(self, position: Position, state: PyTree) -> None:
        """Write a checkpoint if it is time, without waiting for the disk."""
        busy = self._writer is not None and self._writer.is_alive()
        if not busy and time.monotonic() - self._written >= self.every:
            self.write(position, state)

    def write(self, position: Position, state: PyTree) -> None:
        """Copy the state now and write it in another thread."""
        self.wait()
        if (position.phase, position.done) == self._newest:
            return
        self._written, self._newest = time.monotonic(), (position.phase, position.done)
        tensors = {f"state.{i}": np.array(leaf) for i, leaf in enumerate(jax.tree.leaves(jax.device_get(state)))}
        tensors["trace"] = np.array([fit for _, fit in position.trace])
        description = {
            "identity": self.identity,
            "phase": position.phase,
            "done": position.done,
            "iterations": [done for done, _ in position.trace],
            "seconds": position.seconds,
        }
        self._writer = threading.Thread(target=self._write, args=(description, tensors))
        self._writer.start()

    def _write(self, description: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        newest, before = self.folder / NEWEST, self.folder / BEFORE
        try:
            write_tensor_file(newest, KIND, FORMAT, description, tensors, keep_old_as=before)
        except Exception as error:  # no failure to write a checkpoint may end the fit
            self._newest = (-1, -1)
            self._warn_once(error)

    def _warn_once(self, error: Exception) -> None:
        if not self._warned:
            warnings.warn(f"no checkpoint: {error}; the fit continues and will try again", stacklevel=2)
        self._warned = True

    def write_last(self, *newest: tuple[Position, PyTree]) -> None:
        """Write the newest state, if there is one, and wait for the disk; a failure warns and never raises."""
        try:
            for position, state in newest:
                self.write(position, state)
            self.wait()
        except Exception as error:
            self._warn_once(error)

    def wait(self) -> None:
        """Wait until the last write is done."""
        if self._writer is not None:
            self._writer.join()


def _state(path: Path, tensors: dict[str, np.ndarray], expected: PyTree) -> PyTree:
    """The tensors as a state of the expected structure, shapes and types."""
    leaves, structure = jax.tree.flatten(expected)
    arrays = [tensors.get(f"state.{i}") for i in range(len(leaves))]
    for array, leaf in zip(arrays, leaves, strict=True):
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise DeepwellFileError(f"{path} is damaged: its arrays are not those of this fit")
    return jax.tree.unflatten(structure, [jnp.asarray(array) for array in arrays])


def _difference(name: str, was: Any, now: Any) -> str:
    """The part that differs, in words."""
    if name == "columns" and isinstance(was, list) and all(isinstance(c, list) and len(c) == 2 for c in was):
        old, new = [str(column[0]) for column in was], [column[0] for column in now]
        if old != new:
            return f"its columns were {', '.join(old)} and are now {', '.join(new)}"
        return f"the values of column {next(b[0] for a, b in zip(was, now, strict=True) if a != b)!r} differ"
    if isinstance(was, dict) and isinstance(now, dict):
        part = next((key for key in {**was, **now} if was.get(key) != now.get(key)), "")
        return _difference(part, was.get(part), now.get(part))
    if isinstance(was or now, dict) and (was is None or now is None):
        return f"only one of the two has a {name}"
    return f"{name} was {was!r:.200} and is now {now!r:.200}"


def column_digests(names: list[str], matrix: np.ndarray) -> list[list[str]]:
    """The name of each column and a short digest of its values, in order."""
    columns = np.ascontiguousarray(matrix.T)
    pairs = zip(names, columns, strict=True)
    return [[name, hashlib.sha256(column.tobytes()).hexdigest()[:16]] for name, column in pairs]


@contextmanager
def checkpointing(
    folder: str | Path | None, identity: Callable[[], dict[str, Any]], every: float | None, stop: Callable[[], bool]
) -> Iterator[Hooks]:
    """What the driver calls between chunks: writes checkpoints to ``folder``, if there is one, and asks ``stop``."""
    if folder is None:
        yield NO_HOOKS._replace(stop=stop)
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
        newest: list[tuple[Position, PyTree]] = []

        def keep(position: Position, state: PyTree) -> None:
            newest[:] = [(position, state)]
            checkpoints.keep(position, state)

        try:
            yield Hooks(checkpoints.restore, keep, stop)
        finally:
            checkpoints.write_last(*newest)


def has_checkpoint(folder: Path | None) -> bool:
    """Whether the folder holds a checkpoint to go on from."""
    return folder is not None and any((folder / name).exists() for name in (NEWEST, BEFORE))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder: one process uses it at a time."""
    with claimed(folder / LOCK) as mine:
        if not mine:
            raise InputError(f"another process is using the checkpoint folder {folder}")
        yield
