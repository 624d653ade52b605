"""Progress of a sweep: rows done, and the time left."""

import time
from collections.abc import Callable


class SweepProgress:
    """Counts rows and estimates the time left from the cost of the rows done so far and of those to come."""

    def __init__(self, total: int, done: int, cost_left: float, tell: Callable[[str], None]) -> None:
        self.total, self.done = total, done
        self._tell = tell
        self._cost_left = cost_left
        self._cost_done = 0.0
        self._started = time.monotonic()

    def add(self, cost: float, description: str) -> None:
        """Count a row made here and report it."""
        self.done += 1
        self._cost_done, self._cost_left = self._cost_done + cost, max(0.0, self._cost_left - cost)
        seconds_left = (time.monotonic() - self._started) / self._cost_done * self._cost_left
        self._tell(f"[{self.done}/{self.total}] {description}; {duration(seconds_left)} left")

    def add_elsewhere(self, rows: int, cost: float) -> None:
        """Count rows that another process has made, each of this cost."""
        self.done += rows
        self._cost_left = max(0.0, self._cost_left - rows * cost)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever suits."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
