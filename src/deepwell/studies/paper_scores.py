"""The paper's own scores, with their source, to compare ours with."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

NOT_COMPARABLE = ("naval", "cep")
"""The authors' naval had other input columns; their molecules were others."""


class PaperScore(NamedTuple):
    """A published mean, and its standard deviation over the repetitions where it is known."""

    mean: float
    std: float | None = None
    repetitions: int = 10


@cache
def paper_results() -> dict[str, Any]:
    """All of ``published.json``; ``about`` names the source."""
    return json.loads(files("deepwell.studies").joinpath("published.json").read_text())


def paper_score(score: str, dataset: str, method: str) -> PaperScore | None:
    """The paper's ``test_log_likelihood`` or ``accuracy``; None if it gives none."""
    entry = paper_results()[score].get(dataset, {}).get(method)
    if entry is None:
        return None
    return PaperScore(*entry) if isinstance(entry, list) else PaperScore(entry)


def comparable_score(score: str, dataset: str, method: str) -> PaperScore | None:
    """The paper's score where its data were those that we have."""
    return None if dataset in NOT_COMPARABLE else paper_score(score, dataset, method)
