"""A sweep: jobs that each write some rows, skipped when the rows are there, shared by as many processes as like.

A job is claimed by a lock of the operating system for as long as it runs, so that processes of one kind do not do the
same work and a killed one leaves its jobs to others. Other devices, versions and sizes of groups have other jobs, so
such processes may do the same work at the same time; a row is written once all the same. What a job began with is
noted beside its checkpoints: it is taken up with the same members, and rows that it has written already are not written
again.
"""

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from deepwell import __version__
from deepwell.data.errors import InputError
from deepwell.experiments.provenance import provenance
from deepwell.experiments.results import Key, Row, Store
from deepwell.interfaces.containers import write_atomically
from deepwell.interfaces.locks import claimed

MEMBERS = "members.json"
Tell = Callable[[str], None]
Write = Callable[[Row, Row], None]
"""(what was known of a row beforehand, the rest of it)."""


class Job(NamedTuple):
    """Rows to be made together.

    ``members`` are the rows as far as they are known beforehand, their keys included; ``work(members, folder, write)``
    calls ``write(member, rest)`` for each as it comes, and keeps checkpoints in ``folder``. ``cost`` is the relative
    time of one member.
    """

    name: str
    members: Sequence[Row]
    work: Callable[[Sequence[Row], Path, Write], None]
    cost: float = 1.0


class Tally:
    """Rows done, and the time left: that of the rows made so far, at the cost of those to come."""

    def __init__(self, jobs: Sequence[Job], missing: Callable[[Job], int], tell: Tell) -> None:
        self.total = sum(len(job.members) for job in jobs)
        left = {job.name: missing(job) for job in jobs}
        self.done = self.total - sum(left.values())
        self._tell = tell
        self._cost_left = sum(job.cost * left[job.name] for job in jobs)
        self._cost_done = 0.0
        self._started = time.monotonic()

    def add(self, cost: float, words: str) -> None:
        """One row more."""
        self.done += 1
        self._cost_done, self._cost_left = self._cost_done + cost, max(0.0, self._cost_left - cost)
        left = (time.monotonic() - self._started) / self._cost_done * self._cost_left
        self._tell(f"[{self.done}/{self.total}] {words}; {duration(left)} left")


def sweep(store: Store, jobs: Sequence[Job], tell: Tell, words: Callable[[Row], str]) -> list[Job]:
    """Do what is missing; returns the jobs that other processes have in hand.

    A job that ends without having written all its rows keeps its folder, and is an error once the others are done.
    """

    def missing(job: Job, finished: set[Key]) -> list[Row]:
        return [member for member in job.members if store.key(member) not in finished]

    at_first = store.finished()
    tally = Tally(jobs, lambda job: len(missing(job, at_first)), tell)
    tell(f"{store.study}: {tally.done} of {tally.total} rows are there already")

    def write(job: Job, member: Row, rest: Row) -> None:
        row = {**member, **rest, **provenance()}
        if store.append(row):
            tally.add(job.cost, words(row))

    elsewhere, unmade = [], 0
    for job in jobs:
        if not missing(job, at_first):
            continue
        folder = store.hidden / identifier(job.name)
        with claimed(store.hidden / f"{identifier(job.name)}.lock") as mine:
            if not mine:
                elsewhere.append(job)
                continue
            left = missing(job, store.finished())
            if left:
                job.work(_begun(store, folder, left), folder, partial(write, job))
                left = missing(job, store.finished())
            if left:
                unmade += len(left)
            else:
                shutil.rmtree(folder, ignore_errors=True)
    if elsewhere:
        tell(f"{store.study}: {len(elsewhere)} jobs are in the hands of other processes")
    if unmade:
        kept = f"their checkpoints are in {store.hidden}"
        raise InputError(f"{store.study}: rows are missing of jobs that have ended, {unmade} in all; {kept}")
    return elsewhere


def sweep_and_report(
    store: Store, jobs: Sequence[Job], tell: Tell, words: Callable[[Row], str], report: Callable[[], None]
) -> None:
    """A sweep, and a report on the rows there are, however it ended; if both fail, the sweep's error is raised."""
    try:
        sweep(store, jobs, tell, words)
    except BaseException:
        try:
            report()
        except Exception as trouble:
            tell(f"{store.study}: no table and figure of the rows so far: {trouble}")
        raise
    report()


def _begun(store: Store, folder: Path, left: Sequence[Row]) -> Sequence[Row]:
    """The members that a process before this one began with, if they hold all that is left; otherwise those left."""
    note = folder / MEMBERS
    if note.exists():
        begun = json.loads(note.read_bytes())
        if {store.key(row) for row in left} <= {store.key(row) for row in begun}:
            return begun
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(note, json.dumps(left).encode())
    return left


def identifier(name: str) -> str:
    """A name for files; other versions, devices and precisions have others, as their checkpoints cannot be shared."""
    number = jax.numpy.zeros(())
    here = (name, __version__, jax.__version__, next(iter(number.devices())).platform, str(number.dtype))
    return f"{re.sub('[^a-z0-9]+', '-', name.lower())[:80]}-{hashlib.sha256(str(here).encode()).hexdigest()[:8]}"


def in_groups(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Runs of at most ``size``."""
    return (items[i : i + size] for i in range(0, len(items), size))


def duration(seconds: float) -> str:
    """In the unit that suits."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
