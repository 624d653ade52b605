"""A sweep: jobs whose missing rows are made, shared by any number of processes.

A running job holds a lock of the operating system, so that no two processes do the same job and a killed process leaves
its jobs to others. Another device, version or group size makes other jobs, so such processes may do the same work at
the same time; each row is still written once. The members that a group began with are noted beside its checkpoint:
the group goes on with the same members, and its existing rows are not written again.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax

from deepwell import __version__
from deepwell.errors import InputError
from deepwell.store.locks import claimed
from deepwell.store.tensor_file import write_atomically
from deepwell.studies.failures import JobFailures
from deepwell.studies.job import DescribeRow, Job, RowWriter
from deepwell.studies.provenance import provenance
from deepwell.studies.row_store import Row, RowKey, RowStore
from deepwell.studies.sweep_progress import SweepProgress

MEMBERS = "members.json"


def sweep(store: RowStore, jobs: Sequence[Job], tell: Callable[[str], None], describe: DescribeRow) -> list[Job]:
    """Make the missing rows. Returns the jobs that other processes are doing.

    After a job has failed, the others of its kind are skipped; its error is raised at the end. A job that ends without
    having written all its rows is an error too. Both keep their folders.
    """

    def missing(job: Job, finished: set[RowKey]) -> list[Row]:
        return [member for member in job.members if store.key(member) not in finished]

    source, finished_before = provenance(), store.finished()
    to_do = {job.name: len(missing(job, finished_before)) for job in jobs}
    total, cost = sum(len(job.members) for job in jobs), sum(job.cost * to_do[job.name] for job in jobs)
    progress = SweepProgress(total, total - sum(to_do.values()), cost, tell)
    tell(f"{store.study}: {progress.done} of {progress.total} rows are there already")
    rows_left_out = 0
    failures = JobFailures(store.study, tell)

    def run(job: Job, folder: Path) -> None:
        nonlocal rows_left_out
        left = missing(job, store.finished())
        progress.add_elsewhere(to_do[job.name] - len(left), job.cost)
        if left:
            folder.mkdir(parents=True, exist_ok=True)
            members = _members_of_group(store, folder, left) if job.at_once else left
            job.run(members, folder, RowWriter(store, job, len(left), progress, describe, source))
            left = missing(job, store.finished())
        if left:
            rows_left_out += len(left)
        else:
            shutil.rmtree(folder, ignore_errors=True)

    elsewhere = [job for job in jobs if to_do[job.name]]
    for _ in range(2):  # jobs of other processes are tried once more: their process may have died
        pending, elsewhere = elsewhere, []
        for job in pending:
            kind = job.kind or job.name
            if failures.has(kind):
                continue
            folder = store.work_folder / folder_name(job.name)
            with claimed(folder.with_name(f"{folder.name}.lock")) as ours:
                if not ours:
                    elsewhere.append(job)
                    continue
                try:
                    run(job, folder)
                except Exception as error:
                    failures.add(kind, job.name, error)
    if elsewhere:
        tell(f"{store.study}: other processes are doing {len(elsewhere)} jobs")
    failures.raise_all()
    if rows_left_out:
        restart = f"delete their checkpoints in {store.work_folder} to start them again"
        raise InputError(f"{store.study}: jobs ended without writing {rows_left_out} of their rows; {restart}")
    return elsewhere


def _members_of_group(store: RowStore, folder: Path, left: Sequence[Row]) -> Sequence[Row]:
    """The members that an earlier process began with if they include all that are left, else those left."""
    note = folder / MEMBERS
    if note.exists():
        begun = json.loads(note.read_bytes())
        if {store.key(row) for row in left} <= {store.key(row) for row in begun}:
            return begun
        shutil.rmtree(folder)
        folder.mkdir()
    write_atomically(note, json.dumps(left).encode())
    return left


def folder_name(job: str) -> str:
    """The folder of a job. Versions, devices and precisions differ in it, as they cannot share checkpoints."""
    number = jax.numpy.zeros(())
    platform = (job, __version__, jax.__version__, next(iter(number.devices())).platform, str(number.dtype))
    return f"{re.sub('[^a-z0-9]+', '-', job.lower())[:80]}-{hashlib.sha256(str(platform).encode()).hexdigest()[:8]}"


def in_groups(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Consecutive runs of at most ``size`` items."""
    return (items[i : i + size] for i in range(0, len(items), size))
