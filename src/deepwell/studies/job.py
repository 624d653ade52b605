"""One job of a sweep, and the writer of its rows."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from deepwell.studies.row_store import Row, RowStore
from deepwell.studies.sweep_progress import SweepProgress

DescribeRow = Callable[[Row], str]


class Job(NamedTuple):
    """Rows that are made together.

    ``members`` are the rows as far as they are known beforehand, their keys included. ``run(members, folder, write)``
    calls ``write(member, results)`` for each row and keeps checkpoints in ``folder``. ``cost`` is the relative time of
    one member. With ``at_once`` the members are one program, and all rows come at its end. Jobs of one ``kind`` are
    likely to fail in the same way; without a kind each job is its own.
    """

    name: str
    members: Sequence[Row]
    run: Callable[[Sequence[Row], Path, "RowWriter"], None]
    cost: float = 1.0
    at_once: bool = False
    kind: str = ""


class RowWriter:
    """Writes the rows of a job, each with its provenance."""

    def __init__(
        self, store: RowStore, job: Job, rows_left: int, progress: SweepProgress, describe: DescribeRow, source: Row
    ) -> None:
        self._store, self._progress, self._describe, self._source = store, progress, describe, source
        alone, together = [job.cost] * rows_left, [job.cost * rows_left] + [0.0] * rows_left
        self._costs = together if job.at_once else alone

    def wants(self, member: Row) -> bool:
        """Whether this member has no row yet."""
        return self._store.key(member) not in self._store.finished()

    def __call__(self, member: Row, results: Row) -> None:
        """Append the row of a member, unless another process has done so."""
        row = {**member, **results, **self._source}
        if self._store.append(row):
            self._progress.add(self._costs.pop(0), self._describe(row))
