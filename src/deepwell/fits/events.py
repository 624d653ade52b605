"""What a fit tells while it runs: an event after every chunk of iterations, and a callback that logs them."""

import csv
import io
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.errors import InputError
from deepwell.inference.driver import Progress
from deepwell.store.checkpoint import has_checkpoint
from deepwell.store.tensor_file import write_atomically


class Event(NamedTuple):
    """A chunk of iterations is done.

    An exception that a callback raises ends the fit and reaches the caller; a checkpoint, if the fit keeps any, is
    then written as it stood before the chunk, and the same call goes on from there.
    """

    phase: str
    """``warm start``, ``burn-in``, ``warm-up`` or ``sampling``, as the method names it."""
    done: int
    """Iterations, those of earlier phases and of the fit that this one resumes included."""
    total: int
    log_likelihood: float
    """Mean over training rows and the chunk, in the units of y."""
    seconds: float
    """Since this call began to iterate, compilation included."""
    rate: float | None
    """Iterations a second since the first event, which carries the compilation and has none."""


Callback = Callable[[Event], Any]


def announcing(callbacks: Iterable[Callback], log_unit: float) -> Progress:
    """What the driver calls after every chunk; ``log_unit`` turns log-likelihoods into the units of y."""
    listeners = list(callbacks)
    started = time.monotonic()
    first: tuple[float, int] | None = None

    def announce(phase: str, done: int, total: int, log_likelihood: float) -> None:
        nonlocal first
        now = time.monotonic()
        first = first or (now, done)
        elapsed, iterations = now - first[0], done - first[1]
        rate = iterations / elapsed if elapsed > 0.0 and iterations else None
        event = Event(phase, done, total, log_likelihood - log_unit, now - started, rate)
        for listener in listeners:
            listener(event)

    return announce


def checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """A list of functions of one event."""
    found = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
    for callback in found:
        if not callable(callback):
            raise InputError(f"callbacks: {callback!r} is no function of a deepwell.Event")
    return found


class CsvLog:
    """A callback that writes a table of events, a line after every chunk.

    A fit starts the file anew, unless it resumes one whose checkpoints are in the folder ``checkpoint``, the one that
    ``fit`` is given: then it goes on in the file, and lines of iterations that are computed again are replaced. A file
    that is no such log is refused at once; later trouble, such as a full disk, warns once and never ends the fit.
    """

    def __init__(self, path: str | Path, checkpoint: str | Path | None = None) -> None:
        self.path = Path(path)
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self._done: int | None = None
        self._resumed = self._begun = self._warned = False
        self._earlier()

    def __call__(self, event: Event) -> None:
        try:
            if self._done is None or event.done <= self._done:  # the first event of a fit: no checkpoint is its own
                self._resumed, self._begun = has_checkpoint(self.checkpoint), False
            self._done = event.done
            if not self._begun or not self.path.exists():
                self._begin(event)
            self._append(event)
        except Exception as error:  # whatever it is, the fit is worth more than its log
            if not self._warned:
                warnings.warn(f"no log: {error}; the fit goes on, and will try again", stacklevel=2)
            self._warned = True

    def _begin(self, event: Event) -> None:
        """Keep what a fit that this one resumes has logged, and nothing else."""
        earlier = self._earlier() if self._resumed else []
        kept = [row for row in earlier if int(row["done"]) < event.done and row["total"] == str(event.total)]
        header = dict(zip(Event._fields, Event._fields, strict=True))
        write_atomically(self.path, _lines([header, *kept]))
        self._begun = True

    def _append(self, event: Event) -> None:
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            torn = file.read() != b"\n"  # a disk that was full has half a line
            file.write(b"\r\n" * torn + _lines([event._asdict()]))

    def _earlier(self) -> list[dict[str, str]]:
        if not self.path.parent.is_dir():
            raise InputError(f"the folder {self.path.parent} does not exist")
        if not self.path.exists():
            return []
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                if tuple(reader.fieldnames or ()) != Event._fields:
                    raise InputError(f"{self.path} exists and is no log of a fit: choose another name")
                return [row for row in reader if _is_whole(row)]
        except OSError as error:
            raise InputError(f"the log {self.path} cannot be read: {error.strerror}") from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{self.path} exists and is no log of a fit: choose another name") from error


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, Event._fields).writerows(rows)
    return text.getvalue().encode()


def _is_whole(row: dict[Any, Any]) -> bool:
    """A killed process or a full disk may leave half a line, perhaps with another one behind it."""
    return None not in row and None not in row.values() and row["done"].isdecimal()
