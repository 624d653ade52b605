"""Ctrl-C and SIGTERM: the chunk is finished, what there is is kept, and the caller is told."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A fit was interrupted between chunks.

    ``model`` is the fitted model from the samples drawn so far, or None if there were none; ``signal`` is what
    interrupted it.
    """

    def __init__(self, model: Any, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.model = model
        self.signal = number


class Watch:
    """Remembers the first signal; a second one interrupts at once."""

    def __init__(self) -> None:
        self.caught: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None:
            raise KeyboardInterrupt
        self.caught = number

    def stop(self) -> bool:
        """Whether a signal has come."""
        return self.caught is not None


@contextmanager
def watching() -> Iterator[Watch]:
    """Catch signals for the time of a fit; only the main thread can, elsewhere nothing is caught."""
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before: dict[signal.Signals, Callable | int | None] = {s: signal.signal(s, watch) for s in SIGNALS}
    try:
        yield watch
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
