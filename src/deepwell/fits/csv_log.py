"""A callback that logs the events of a fit as CSV."""

import csv
import io
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deepwell.errors import InputError
from deepwell.fits.events import Event
from deepwell.store.checkpoint import has_checkpoint
from deepwell.store.tensor_file import write_atomically


class CsvLog:
    """A callback that writes a CSV line per event, that is after every chunk of iterations.

    A new fit replaces the file. A fit that resumes from the folder ``checkpoint`` (give ``fit`` the same one) continues
    the file, and replaces the lines of iterations that it computes again. A file that is not such a log is refused at
    once. A later failure, such as a full disk, warns once and does not end the fit.
    """

    def __init__(self, path: str | Path, checkpoint: str | Path | None = None) -> None:
        self.path = Path(path)
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self._done: int | None = None
        self._resumed = self._begun = self._warned = False
        self._earlier_rows()  # refuses a file that is not a log

    def __call__(self, event: Event) -> None:
        try:
            if (
                self._done is None or event.done <= self._done
            ):  # the first event of a fit, which has no checkpoint of its own yet
                self._resumed, self._begun = has_checkpoint(self.checkpoint), False
            self._done = event.done
            if not self._begun or not self.path.exists():
                self._begin(event)
            self._append(event)
        except Exception as error:  # no failure of the log may end the fit
            if not self._warned:
                warnings.warn(
                    f"cannot write the log: {error}; the fit continues, and tries again after every chunk", stacklevel=2
                )
            self._warned = True

    def _begin(self, event: Event) -> None:
        """Start the file with the lines of the fit that this one resumes, if any."""
        earlier = self._earlier_rows() if self._resumed else []
        kept = [row for row in earlier if int(row["done"]) < event.done and row["total"] == str(event.total)]
        header = dict(zip(Event._fields, Event._fields, strict=True))
        write_atomically(self.path, _lines([header, *kept]))
        self._begun = True

    def _append(self, event: Event) -> None:
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            torn = file.read() != b"\n"  # a full disk leaves half a line
            file.write(b"\r\n" * torn + _lines([event._asdict()]))

    def _earlier_rows(self) -> list[dict[str, str]]:
        if not self.path.parent.is_dir():
            raise InputError(f"the folder {self.path.parent} does not exist")
        if not self.path.exists():
            return []
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                if tuple(reader.fieldnames or ()) != Event._fields:
                    raise InputError(f"{self.path} exists and is not the log of a fit: choose another name")
                return [row for row in reader if _is_whole(row)]
        except OSError as error:
            raise InputError(f"the log {self.path} cannot be read: {error.strerror}") from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{self.path} exists and is not the log of a fit: choose another name") from error


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, Event._fields).writerows(rows)
    return text.getvalue().encode()


def _is_whole(row: dict[Any, Any]) -> bool:
    """A killed process or a full disk leaves half a line, to which the next may have been joined."""
    return None not in row and None not in row.values() and row["done"].isdecimal()
