"""Checkpoints: the whole state of a fit on disk, so that the same command goes on where the last one stopped.

A folder holds the newest checkpoint, the one before it, and a lock. A checkpoint is written to a temporary file,
flushed to disk and renamed, by a thread of its own; a write that fails warns once and is tried again later.
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
from deepwell.inference.driver import Keeper, Place, Template, Valid
from deepwell.store.locks import claimed
from deepwell.store.tensor_file import DeepwellFileError, read_container, write_container

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
        self._newest = (-1, -1)  # phase and iteration of the newest checkpoint
        for leftover in folder.glob(f".{NEWEST}.*"):  # of a process killed while it wrote
            with suppress(OSError):
                leftover.unlink()

    def restore(self, valid: Valid, template: Template) -> tuple[Place, PyTree] | None:
        """The newest checkpoint that can be read, or None if there is none; another fit's is refused."""
        for name in (NEWEST, BEFORE):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                place, tensors = self._read(path, valid)
                return place, _state(path, tensors, template(place.phase))
            except DeepwellFileError as error:
                warnings.warn(f"{error}; going on from the checkpoint before it, or from the start", stacklevel=2)
                with suppress(OSError):  # aside, or it would be kept in place of a good one
                    path.replace(self.folder / f"unread.{name}")
        return None

    def _read(self, path: Path, valid: Valid) -> tuple[Place, dict[str, np.ndarray]]:
        described, tensors = read_container(path, KIND, (FORMAT,))
        self._require_same_fit(described.get("identity"), path)
        try:
            phase, done = int(described["phase"]), int(described["done"])
            iterations = [int(i) for i in described["iterations"]]
            seconds = float(described.get("seconds", 0.0))
            place = Place(phase, done, list(zip(iterations, tensors["trace"], strict=True)), seconds)
            if not 0.0 <= seconds < float("inf"):
                raise ValueError(f"it cannot have taken {seconds} seconds")
            if not valid(phase, done):
                raise ValueError(f"there is no iteration {done} of phase {phase} to go on from")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DeepwellFileError(f"{path} is damaged: {error!r:.300}") from error
        return place, tensors

    def _require_same_fit(self, found: Any, path: Path) -> None:
        if not isinstance(found, dict):
            raise DeepwellFileError(f"{path} is damaged: it does not say whose checkpoint it is")
        expected = json.loads(json.dumps(self.identity))
        for name in {**expected, **found}:
            value = expected.get(name)
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
        if (place.phase, place.done) == self._newest:
            return
        self._written, self._newest = time.monotonic(), (place.phase, place.done)
        tensors = {f"state.{i}": np.array(leaf) for i, leaf in enumerate(jax.tree.leaves(jax.device_get(state)))}
        tensors["trace"] = np.array([fit for _, fit in place.trace])
        described = {
            "identity": self.identity,
            "phase": place.phase,
            "done": place.done,
            "iterations": [done for done, _ in place.trace],
            "seconds": place.seconds,
        }
        self._writer = threading.Thread(target=self._write, args=(described, tensors))
        self._writer.start()

    def _write(self, described: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        newest, before = self.folder / NEWEST, self.folder / BEFORE
        try:
            write_container(newest, KIND, FORMAT, described, tensors, keep_old_as=before)
        except Exception as error:  # whatever it is, the fit is worth more than its checkpoint
            self._newest = (-1, -1)
            self._warn_once(error)

    def _warn_once(self, error: Exception) -> None:
        if not self._warned:
            warnings.warn(f"no checkpoint: {error}; the fit goes on, and will try again", stacklevel=2)
        self._warned = True

    def write_last(self, *newest: tuple[Place, PyTree]) -> None:
        """Write where the fit has come to, if anywhere, and wait for the disk; no trouble here may hide another."""
        try:
            for place, state in newest:
                self.write(place, state)
            self.wait()
        except Exception as error:
            self._warn_once(error)

    def wait(self) -> None:
        """Until the last write is done."""
        if self._writer is not None:
            self._writer.join()


def _state(path: Path, tensors: dict[str, np.ndarray], expected: PyTree) -> PyTree:
    """The tensors as a state of the expected structure, shapes and types."""
    leaves, structure = jax.tree.flatten(expected)
    found = [tensors.get(f"state.{i}") for i in range(len(leaves))]
    for array, leaf in zip(found, leaves, strict=True):
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise DeepwellFileError(f"{path} is damaged: its arrays are not those of this fit")
    return jax.tree.unflatten(structure, [jnp.asarray(array) for array in found])


def _difference(name: str, found: Any, now: Any) -> str:
    """The part that differs, in words."""
    if name == "columns" and isinstance(found, list) and all(isinstance(c, list) and len(c) == 2 for c in found):
        old, new = [str(column[0]) for column in found], [column[0] for column in now]
        if old != new:
            return f"its columns were {', '.join(old)} and are now {', '.join(new)}"
        return f"the values of column {next(b[0] for a, b in zip(found, now, strict=True) if a != b)!r} differ"
    if isinstance(found, dict) and isinstance(now, dict):
        part = next((key for key in {**found, **now} if found.get(key) != now.get(key)), "")
        return _difference(part, found.get(part), now.get(part))
    if isinstance(found, dict) or isinstance(now, dict):
        return f"only one of the two has a {name}"
    return f"{name} was {found!r:.200} and is now {now!r:.200}"


def column_digests(names: list[str], matrix: np.ndarray) -> list[list[str]]:
    """The name of each column and a short digest of its values, in order."""
    columns = np.ascontiguousarray(matrix.T)
    pairs = zip(names, columns, strict=True)
    return [[name, hashlib.sha256(column.tobytes()).hexdigest()[:16]] for name, column in pairs]


@contextmanager
def checkpointing(
    folder: str | Path | None, identity: Callable[[], dict[str, Any]], every: float | None, stop: Callable[[], bool]
) -> Iterator[Keeper]:
    """A keeper of the run: writes checkpoints to ``folder`` if there is one, and says when to stop."""
    if folder is None:
        yield Keeper(lambda valid, template: None, lambda place, state: None, stop)
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
            checkpoints.write_last(*newest)


def has_checkpoint(folder: Path | None) -> bool:
    """Whether a fit has left something here to go on from."""
    return folder is not None and any((folder / name).exists() for name in (NEWEST, BEFORE))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process a folder."""
    with claimed(folder / LOCK) as mine:
        if not mine:
            raise InputError(f"another process is using the checkpoint folder {folder}")
        yield
