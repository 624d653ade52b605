"""The paper's own figures, with their source, to stand beside ours."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """A published mean; its standard deviation over so many repetitions, where it is known."""

    mean: float
    std: float | None = None
    repetitions: int = 10


@cache
def published() -> dict[str, Any]:
    """Everything in ``published.json``: ``about`` is the source."""
    return json.loads(files("deepwell.studies").joinpath("published.json").read_text())


def published_figure(table: str, dataset: str, method: str) -> Figure | None:
    """One entry of ``test_log_likelihood`` or ``accuracy``; None if the paper has none."""
    found = published()[table].get(dataset, {}).get(method)
    if found is None:
        return None
    return Figure(*found) if isinstance(found, list) else Figure(found)
