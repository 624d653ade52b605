"""Rows of a study in a file of JSON lines: what is there is not computed again."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def missing(path: Path, wanted: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the rows wanted, known by some of their entries, those that the file lacks."""
    found = read_rows(path)
    return [key for key in wanted if not any(key.items() <= row.items() for row in found)]


def append_row(path: Path, row: dict[str, Any]) -> None:
    """One line more, printed as well."""
    line = json.dumps(row)
    print(line, flush=True)
    with path.open("a") as file:
        file.write(line + "\n")
