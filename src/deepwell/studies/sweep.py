"""A sweep: jobs that each write some rows, skipped when the rows are there, shared by as many processes as like.

A job is claimed by a lock of the operating system for as long as it runs, so that processes of one kind do not do the
same work and a killed one leaves its jobs to others. Other devices, versions and sizes of groups have other jobs, so
such processes may do the same work at the same time; a row is written once all the same. What a group began with is
noted beside its checkpoints: it is taken up with the same members, and rows that it has written already are not written
again.
"""

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from deepwell import __version__
from deepwell.errors import InputError
from deepwell.store.locks import claimed
from deepwell.store.tensor_file import write_atomically
from deepwell.studies.failures import Failures
from deepwell.studies.options import Options
from deepwell.studies.page import Draw, publish
from deepwell.studies.provenance import provenance
from deepwell.studies.rows import Key, Row, Store

MEMBERS = "members.json"
Tell = Callable[[str], None]
Words = Callable[[Row], str]


class Job(NamedTuple):
    """Rows to be made together.

    ``members`` are the rows as far as they are known beforehand, their keys included; ``work(members, folder, write)``
    calls ``write(member, rest)`` for each as it comes, and keeps checkpoints in ``folder``. ``cost`` is the relative
    time of one member; ``at_once``: they are one program, and all rows come at its end. Jobs of one ``kind`` are
    likely to fail alike.
    """

    name: str
    members: Sequence[Row]
    work: Callable[[Sequence[Row], Path, "Writer"], None]
    cost: float = 1.0
    at_once: bool = False
    kind: str = ""


class Tally:
    """Rows done, and the time left: that of the rows made so far, at the cost of those to come."""

    def __init__(self, total: int, done: int, cost_left: float, tell: Tell) -> None:
        self.total, self.done = total, done
        self._tell = tell
        self._cost_left = cost_left
        self._cost_done = 0.0
        self._started = time.monotonic()

    def add(self, cost: float, words: str) -> None:
        """One row more."""
        self.done += 1
        self._cost_done, self._cost_left = self._cost_done + cost, max(0.0, self._cost_left - cost)
        left = (time.monotonic() - self._started) / self._cost_done * self._cost_left
        self._tell(f"[{self.done}/{self.total}] {words}; {duration(left)} left")

    def made_elsewhere(self, rows: int, cost: float) -> None:
        """Rows that another process has made."""
        self.done += rows
        self._cost_left = max(0.0, self._cost_left - rows * cost)


class Writer:
    """Writes the rows of a job, with where they come from; ``wants`` says whether a member has none yet."""

    def __init__(self, store: Store, job: Job, left: int, tally: Tally, words: Words, made_by: Row) -> None:
        self._store, self._tally, self._words, self._made_by = store, tally, words, made_by
        self._costs = [job.cost * left] + [0.0] * left if job.at_once else [job.cost] * left

    def wants(self, member: Row) -> bool:
        return self._store.key(member) not in self._store.finished()

    def __call__(self, member: Row, rest: Row) -> None:
        """(what was known of a row beforehand, the rest of it)."""
        row = {**member, **rest, **self._made_by}
        if self._store.append(row):
            self._tally.add(self._costs.pop(0), self._words(row))


def sweep(store: Store, jobs: Sequence[Job], tell: Tell, words: Words) -> list[Job]:
    """Do what is missing; returns the jobs that other processes have in hand.

    A job that fails keeps only those of its kind from running; what it failed of is raised at the end. So is it if a
    job ends without having written all its rows. Either keeps its folder.
    """

    def missing(job: Job, finished: set[Key]) -> list[Row]:
        return [member for member in job.members if store.key(member) not in finished]

    made_by, at_first = provenance(), store.finished()
    to_do = {job.name: len(missing(job, at_first)) for job in jobs}
    total, cost = sum(len(job.members) for job in jobs), sum(job.cost * to_do[job.name] for job in jobs)
    tally = Tally(total, total - sum(to_do.values()), cost, tell)
    tell(f"{store.study}: {tally.done} of {tally.total} rows are there already")
    unmade = 0
    failures = Failures(store.study, tell)

    def do(job: Job, folder: Path) -> None:
        nonlocal unmade
        left = missing(job, store.finished())
        tally.made_elsewhere(to_do[job.name] - len(left), job.cost)
        if left:
            folder.mkdir(parents=True, exist_ok=True)
            members = _begun(store, folder, left) if job.at_once else left
            job.work(members, folder, Writer(store, job, len(left), tally, words, made_by))
            left = missing(job, store.finished())
        if left:
            unmade += len(left)
        else:
            shutil.rmtree(folder, ignore_errors=True)

    elsewhere = [job for job in jobs if to_do[job.name]]
    for _ in range(2):  # those in other hands are asked for once more: their process may have died
        pending, elsewhere = elsewhere, []
        for job in pending:
            kind = job.kind or job.name
            if failures.of_kind(kind):
                continue
            folder = store.hidden / identifier(job.name)
            with claimed(folder.with_name(f"{folder.name}.lock")) as mine:
                if not mine:
                    elsewhere.append(job)
                    continue
                try:
                    do(job, folder)
                except Exception as error:
                    failures.add(kind, job.name, error)
    if elsewhere:
        tell(f"{store.study}: {len(elsewhere)} jobs are in the hands of other processes")
    failures.tell_at_the_end()
    if unmade:
        kept = f"their checkpoints are in {store.hidden}: delete these to begin them anew"
        raise InputError(f"{store.study}: rows are missing of jobs that have ended, {unmade} in all; {kept}")
    return elsewhere


def sweep_and_publish(store: Store, options: Options, jobs: Sequence[Job], words: Words, draw: Draw) -> None:
    """A sweep, and the page of the rows there are, however it ended; if both fail, the sweep's error is raised."""
    try:
        sweep(store, jobs, options.tell, words)
    except BaseException:
        try:
            publish(store, options, draw)
        except Exception as trouble:
            options.tell(f"{store.study}: no table and figure of the rows so far: {trouble}")
        raise
    publish(store, options, draw)


def _begun(store: Store, folder: Path, left: Sequence[Row]) -> Sequence[Row]:
    """The members that a process before this one began with, if they hold all that is left; otherwise those left."""
    note = folder / MEMBERS
    if note.exists():
        begun = json.loads(note.read_bytes())
        if {store.key(row) for row in left} <= {store.key(row) for row in begun}:
            return begun
        shutil.rmtree(folder)
        folder.mkdir()
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
