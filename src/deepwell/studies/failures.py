"""Failed jobs of a sweep: which other jobs to skip, and which error to raise at the end."""

from collections.abc import Callable

from deepwell.errors import InputError


class JobFailures:
    """The error of each kind of job that failed. Other jobs of that kind are likely to fail in the same way."""

    def __init__(self, study: str, tell: Callable[[str], None]) -> None:
        self._study, self._tell = study, tell
        self._by_kind: dict[str, Exception] = {}

    def has(self, kind: str) -> bool:
        """Whether a job of this kind has failed."""
        return kind in self._by_kind

    def add(self, kind: str, name: str, error: Exception) -> None:
        """Record a failed job and report it."""
        self._by_kind[kind] = error
        others = "" if kind == name else f"; the other jobs of {kind} are skipped"
        self._tell(f"{self._study}: {name} failed: {_message(error)}{others}")

    def raise_all(self) -> None:
        """Raise the error itself if all failed jobs have one message, else an error that lists them."""
        kinds_by_message: dict[str, list[str]] = {}
        for kind, error in self._by_kind.items():
            kinds_by_message.setdefault(_message(error), []).append(kind)
        if len(kinds_by_message) == 1:
            raise next(iter(self._by_kind.values()))
        if kinds_by_message:
            listed = [f"{_counted(kinds)} failed: {message}" for message, kinds in kinds_by_message.items()]
            raise InputError("; ".join(listed))


def _counted(kinds: list[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{kinds[0]} and {len(kinds) - 1} more"


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__
