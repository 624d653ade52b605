"""Jobs of a sweep that fail: which others to pass over, and what to say at the end."""

from collections.abc import Callable

from deepwell.errors import InputError


class Failures:
    """What jobs failed of, by kind: what one has failed of, the others of its kind are likely to fail of too."""

    def __init__(self, study: str, tell: Callable[[str], None]) -> None:
        self._study, self._tell = study, tell
        self._by_kind: dict[str, Exception] = {}

    def of_kind(self, kind: str) -> bool:
        """Whether one of this kind has failed."""
        return kind in self._by_kind

    def add(self, kind: str, name: str, error: Exception) -> None:
        """Note it, and say so."""
        self._by_kind[kind] = error
        others = "" if kind == name else f"; the other jobs of {kind} are passed over"
        self._tell(f"{self._study}: {name} failed: {_said(error)}{others}")

    def tell_at_the_end(self) -> None:
        """Raise what there is: the error itself, or, if jobs have failed of different things, a list."""
        kinds: dict[str, list[str]] = {}
        for kind, error in self._by_kind.items():
            kinds.setdefault(_said(error), []).append(kind)
        if len(kinds) == 1:
            raise next(iter(self._by_kind.values()))
        if kinds:
            raise InputError("; ".join(f"{_counted(some)} failed: {said}" for said, some in kinds.items()))


def _counted(kinds: list[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{kinds[0]} and {len(kinds) - 1} more"


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
