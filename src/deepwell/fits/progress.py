"""Show the progress of a fit: a bar in a terminal or a notebook, plain lines elsewhere."""

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deepwell.fits.events import Callback, Event

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.2


@contextmanager
def progress_bars(verbose: bool) -> Iterator[list[Callback]]:
    """The callbacks that show progress here, none unless ``verbose``."""
    if not verbose:
        yield []
    elif in_notebook():
        yield [notebook_bar()]
    elif sys.stderr.isatty():
        with _terminal_bar() as bar:
            yield [bar]
    else:
        yield [_lines()]


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel; IPython in a terminal counts as a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def notebook_bar() -> Callback:
    """A bar in the output of the cell that updates in place."""
    from IPython.display import HTML, display

    shown = display(HTML("<progress></progress> compiling"), display_id=True)
    last = [float("-inf")]

    def update(event: Event) -> None:
        now = time.monotonic()
        if now - last[0] >= SECONDS_BETWEEN_UPDATES or event.done == event.total:
            last[0] = now
            bar = f"<progress value='{event.done}' max='{event.total}'></progress>"
            shown.update(HTML(f"{bar} {html.escape(in_words(event))}"))

    return update


@contextmanager
def _terminal_bar() -> Iterator[Callback]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
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

        def update(event: Event) -> None:
            fit = f"{event.log_likelihood:.3f}"
            bar.update(
                task, description=event.phase, completed=event.done, total=event.total, rate=_rate(event), fit=fit
            )

        yield update


def _lines() -> Callback:
    last = [float("-inf")]

    def say(event: Event) -> None:
        now = time.monotonic()
        if now - last[0] >= SECONDS_BETWEEN_LINES or event.done == event.total:
            last[0] = now
            print(in_words(event), file=sys.stderr)

    return say


def in_words(event: Event) -> str:
    """An event on one line."""
    left = "-" if event.rate is None else f"{(event.total - event.done) / event.rate:.0f}"
    return (
        f"{event.phase} {event.done}/{event.total}, {_rate(event)} it/s, {left} s left, "
        f"log-likelihood {event.log_likelihood:.3f}"
    )


def _rate(event: Event) -> str:
    return "-" if event.rate is None else f"{event.rate:.0f}"
