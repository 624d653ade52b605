"""Rows of a study in ``<folder>/<study>.jsonl``, one JSON line each, which several processes may share.

A row is appended as one whole line under a lock, and only if there is no row of its key yet. A line torn by a killed
process is no row: readers pass over it, and the next writer removes it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepwell.errors import InputError
from deepwell.store.locks import claimed

Row = dict[str, Any]
Key = tuple[str, ...]


class Store:
    """The rows of one study; ``key`` names the fields that tell rows apart."""

    def __init__(self, folder: Path, study: str, key: Sequence[str]) -> None:
        self.folder, self.study = folder, study
        self.path = folder / f"{study}.jsonl"
        self.hidden = folder / ".work" / study
        """Locks and checkpoints of the study."""
        self._names = tuple(key)
        self._make_folder()

    def key(self, row: Row) -> Key:
        """What tells this row apart from others, as text."""
        return tuple(json.dumps(row.get(name), sort_keys=True) for name in self._names)

    def rows(self) -> list[Row]:
        """All whole rows, in the order of their writing."""
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error
        return [row for line in lines if (row := _read(line)) is not None]

    def finished(self) -> set[Key]:
        """Keys of the rows there are."""
        return {self.key(row) for row in self.rows()}

    def append(self, row: Row) -> bool:
        """Write a row, on disk when this returns; False if there was one of its key. The folder may have gone."""
        line = json.dumps(row).encode() + b"\n"
        self._make_folder()
        with claimed(self.hidden / "rows.lock", wait=True):
            if self.key(row) in self.finished():
                return False
            try:
                with self.path.open("ab") as file:
                    _mend(self.path)
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise InputError(f"cannot write to {self.path}: {error.strerror}") from error
        return True

    def _make_folder(self) -> None:
        try:
            self.hidden.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self.hidden}: {error.strerror}") from error


def _read(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _mend(path: Path) -> None:
    """End the last line: a whole row that lacks its line end gets one, a torn one is cut off."""
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return
    start = content.rfind(b"\n") + 1
    if _read(content[start:]) is None:
        os.truncate(path, start)
    else:
        with path.open("ab") as file:
            file.write(b"\n")
