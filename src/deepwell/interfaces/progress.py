"""Progress of a fit: a bar in a terminal, plain lines elsewhere, or the caller's own function."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deepwell.inference.run import Progress

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def reporting(progress: Progress | None, verbose: bool, log_unit: float) -> Iterator[Progress]:
    """A function to call after every chunk; ``log_unit`` turns log-likelihoods into the units of y."""
    listeners: list[Progress] = [] if progress is None else [progress]

    def report(phase: str, done: int, total: int, log_likelihood: float) -> None:
        for listener in listeners:
            listener(phase, done, total, log_likelihood - log_unit)

    if not verbose:
        yield report
    elif sys.stderr.isatty():
        with _bar() as listener:
            listeners.append(listener)
            yield report
    else:
        listeners.append(_lines())
        yield report


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]} it/s"),
        TimeRemainingColumn(),
        TextColumn("log-likelihood {task.fields[fit]}"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("compiling", total=None, rate="-", fit="-")
        rate = _Rate()

        def listener(phase: str, done: int, total: int, log_likelihood: float) -> None:
            speed = rate.update(done)
            bar.update(task, description=phase, completed=done, total=total, rate=speed, fit=f"{log_likelihood:.3f}")

        yield listener


def _lines() -> Progress:
    rate = _Rate()
    last = [float("-inf")]

    def listener(phase: str, done: int, total: int, log_likelihood: float) -> None:
        speed = rate.update(done)
        left = f"{(total - done) / float(speed):.0f} s left" if speed not in ("-", "0") else "- s left"
        now = time.monotonic()
        if now - last[0] >= SECONDS_BETWEEN_LINES or done == total:
            last[0] = now
            print(f"{phase} {done}/{total}, {speed} it/s, {left}, log-likelihood {log_likelihood:.3f}", file=sys.stderr)

    return listener


class _Rate:
    """Iterations a second since the first report, which carries the compilation."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None

    def update(self, done: int) -> str:
        now = time.monotonic()
        if self.first is None:
            self.first = (now, done)
            return "-"
        elapsed, iterations = now - self.first[0], done - self.first[1]
        return f"{iterations / elapsed:.0f}" if elapsed > 0 else "-"
