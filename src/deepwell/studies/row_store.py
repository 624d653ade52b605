"""Rows of a study in ``<folder>/<study>.jsonl``, one JSON line each, which several processes may share.

A row is appended as one whole line under a lock, and only if no row has its key yet. A line torn by a killed process
is not a row: readers skip it, and the next writer removes it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepwell.errors import InputError
from deepwell.store.locks import claimed

Row = dict[str, Any]
RowKey = tuple[str, ...]


class RowStore:
    """The rows of one study; ``key_fields`` name the fields that tell rows apart."""

    def __init__(self, folder: Path, study: str, key_fields: Sequence[str]) -> None:
        self.study = study
        self.path = folder / f"{study}.jsonl"
        self.work_folder = folder / ".work" / study
        """Locks and checkpoints of the study."""
        self._key_fields = tuple(key_fields)
        self._make_folder()

    def key(self, row: Row) -> RowKey:
        """The values of the key fields, as JSON."""
        return tuple(json.dumps(row.get(name), sort_keys=True) for name in self._key_fields)

    def rows(self) -> list[Row]:
        """All whole rows, in the order in which they were written."""
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error
        return [row for line in lines if (row := _parsed(line)) is not None]

    def finished(self) -> set[RowKey]:
        """Keys of the rows that exist."""
        return {self.key(row) for row in self.rows()}

    def append(self, row: Row) -> bool:
        """Write a row to disk; False if its key exists. The folder is made again if it was removed."""
        line = json.dumps(row).encode() + b"\n"
        self._make_folder()
        with claimed(self.work_folder / "rows.lock", wait=True):
            if self.key(row) in self.finished():
                return False
            try:
                with self.path.open("ab") as file:
                    _end_last_line(self.path)
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise InputError(f"cannot write to {self.path}: {error.strerror}") from error
        return True

    def _make_folder(self) -> None:
        try:
            self.work_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self.work_folder}: {error.strerror}") from error


def _parsed(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _end_last_line(path: Path) -> None:
    """A whole last row without a line end gets one; a torn one is cut off."""
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return
    start = content.rfind(b"\n") + 1
    if _parsed(content[start:]) is None:
        os.truncate(path, start)
    else:
        with path.open("ab") as file:
            file.write(b"\n")
