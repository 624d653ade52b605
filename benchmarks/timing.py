"""Timing of functions that run a number of iterations."""

import time
from collections.abc import Callable


def seconds_per_iteration(run: Callable[[int], None], count: int) -> float:
    """Of one call that runs ``count`` iterations."""
    started = time.perf_counter()
    run(count)
    return (time.perf_counter() - started) / count
