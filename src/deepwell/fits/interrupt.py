"""Ctrl-C and SIGTERM: the chunk is finished, what there is is kept, and the caller is told."""

import signal
import threading
from collections.abc import Iterator
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

    def __reduce__(self) -> tuple[type, tuple[Any, int]]:
        return type(self), (self.model, self.signal)


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
    """Catch signals for the time of a fit; only the main thread can, elsewhere nothing is caught.

    An error that ends the fit before a caught signal could is told as ``Interrupted`` without a model: the caller asked
    for the end, and the error is its cause.
    """
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before = {s: signal.getsignal(s) for s in SIGNALS}
    ours = [s for s in SIGNALS if before[s] not in (None, signal.SIG_IGN)]  # not what others installed or ignore
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
