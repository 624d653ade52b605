"""Events: what callbacks are told after every chunk of iterations of a fit."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from deepwell.errors import InputError
from deepwell.inference.driver import Progress


class Event(NamedTuple):
    """The state of a fit after a chunk of iterations.

    An exception raised by a callback ends the fit and reaches the caller. If the fit keeps checkpoints, one is written
    with the state before the chunk, and the same call continues from it.
    """

    phase: str
    """``warm start``, ``burn-in``, ``warm-up`` or ``sampling``, as the method names it."""
    done: int
    """Iterations so far, including earlier phases and the fit that this one resumes."""
    total: int
    log_likelihood: float
    """Mean over training rows and the chunk, in the units of y."""
    seconds: float
    """Since this call began to iterate, including compilation."""
    rate: float | None
    """Iterations per second since the first event; None in that one, whose time includes compilation."""


Callback = Callable[[Event], Any]


def event_reporter(callbacks: Iterable[Callback], log_unit: float) -> Progress:
    """The function that the driver calls after every chunk; ``log_unit`` turns log-likelihoods into the units of y."""
    listeners = list(callbacks)
    started = time.monotonic()
    first: tuple[float, int] | None = None

    def announce(phase: str, done: int, total: int, log_likelihood: float) -> None:
        nonlocal first
        now = time.monotonic()
        first = first or (now, done)
        elapsed, iterations = now - first[0], done - first[1]
        rate = iterations / elapsed if elapsed > 0.0 and iterations else None
        event = Event(phase, done, total, log_likelihood - log_unit, now - started, rate)
        for listener in listeners:
            listener(event)

    return announce


def checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Callbacks as a tuple; one function alone is accepted too."""
    checked = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
    for callback in checked:
        if not callable(callback):
            raise InputError(f"callbacks: {callback!r} is not a function of a deepwell.Event")
    return checked
