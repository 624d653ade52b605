"""Ctrl-C and SIGTERM end a fit after the current chunk; the samples drawn so far reach the caller."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A fit was interrupted between chunks.

    ``model`` is the fitted model of the samples drawn so far, or None if there were none; ``signal`` is the number of
    the signal that interrupted it.
    """

    def __init__(self, model: Any, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.model = model
        self.signal = number

    def __reduce__(self) -> tuple[type, tuple[Any, int]]:
        return type(self), (self.model, self.signal)


class Watch:
    """Remember the first signal; a second one interrupts at once."""

    def __init__(self) -> None:
        self.caught: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None:
            raise KeyboardInterrupt
        self.caught = number

    def stop(self) -> bool:
        """Whether a signal was caught."""
        return self.caught is not None


@contextmanager
def signal_watch() -> Iterator[Watch]:
    """Catch signals during a fit. Only the main thread can; in others nothing is caught.

    If an error ends the fit after a signal was caught, ``Interrupted`` without a model is raised from that error,
    because the caller had asked for the end.
    """
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before = {s: signal.getsignal(s) for s in SIGNALS}
    # Signals that are ignored, or whose handlers were not set from Python, stay as they are.
    ours = [s for s in SIGNALS if before[s] not in (None, signal.SIG_IGN)]
    for number in ours:
        signal.signal(number, watch)
    try:
        yield watch
    except Exception as error:
        if watch.caught is None:
            raise
        raise Interrupted(None, watch.caught) from error
    finally:
        for number in ours:
            signal.signal(number, before[number])
