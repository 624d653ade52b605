"""The options of a study, and the conditions under which its rows are made."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax

from deepwell.errors import InputError
from deepwell.fits.prepare import checked_seed
from deepwell.fits.presets import make_settings
from deepwell.fits.settings import Settings
from deepwell.studies.row_store import Row

CONDITIONS = ("preset", "settings", "smoke")
"""Fields of every row that say how it was made."""
SMOKE_SETTINGS: dict[str, Any] = {"num_inducing": 8, "width": 2, "burn_in": 20, "num_samples": 20, "spacing": 2}
"""Settings of a smoke run. Studies share them, so that they share compiled programs."""
REPORTED_SPLITS = tuple(range(10))
"""Splits that tables and figures show. Splits from 10 on are for choosing settings and have rows only."""
GROUP_SIZE_ON_GPU, GROUP_SIZE_ON_CPU = 10, 1
"""Splits that run as one program. A GPU runs ten in three to four times the time of one; a CPU gains nothing."""


class StudyDefaults(NamedTuple):
    """What a study uses unless told otherwise.

    ``own_settings`` name the settings that the study sets itself and by which it names its rows. The rows of one run
    have ``num_seeds`` consecutive seeds.
    """

    preset: str = "paper"
    own_settings: tuple[str, ...] = ()
    smoke_settings: dict[str, Any] = SMOKE_SETTINGS
    num_seeds: int = 1


@dataclass(frozen=True)
class StudyOptions:
    """What a study was asked for. None stands for the study's default."""

    folder: Path
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    depths: Sequence[int] | None = None
    splits: Sequence[int] | None = None
    preset: str | None = None
    seed: int = 0
    group_size: int | None = None
    every: float | None = None
    smoke: bool = False
    verbose: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda line: None
    defaults: StudyDefaults = field(default_factory=StudyDefaults)

    def for_study(self, defaults: StudyDefaults) -> "StudyOptions":
        """Check the options against a study and fill in its defaults. A setting that is None is the preset's."""
        for name in defaults.own_settings:
            if name in self.settings:
                raise InputError(f"--set {name}={self.settings[name]}: this study sets {name} itself")
        checked_seed(self.seed + max(defaults.num_seeds - 1, *(self.splits or REPORTED_SPLITS)))
        settings = {name: value for name, value in self.settings.items() if value is not None}
        return dataclasses.replace(self, preset=self.preset or defaults.preset, settings=settings, defaults=defaults)

    def fit_settings(self, own: dict[str, Any]) -> Settings:
        """The settings of a fit: the study's ``own``, overridden by those asked for. Raises before anything runs if
        they contradict each other."""
        return make_settings(str(self.preset), **{**own, **self.conditions()["settings"]})

    def splits_per_program(self) -> int:
        """The group size asked for, or the one that suits the device."""
        device = jax.config.jax_default_device  # type: ignore[attr-defined]
        platform = jax.default_backend() if device is None else getattr(device, "platform", device)
        return self.group_size or (GROUP_SIZE_ON_CPU if platform == "cpu" else GROUP_SIZE_ON_GPU)

    def conditions(self) -> Row:
        """The fields ``CONDITIONS`` of a row. Equal settings have one form; those of a smoke run replace the
        preset's."""
        settings = {**(self.defaults.smoke_settings if self.smoke else {}), **self.settings}
        in_one_form = {name: _as_in_json(value) for name, value in sorted(settings.items())}
        return {"preset": self.preset, "settings": in_one_form, "smoke": self.smoke}

    def row(self, **fields: Any) -> Row:
        """What is known of a row before it is made: these fields, the seed and the conditions."""
        return {**fields, "seed": self.seed, **self.conditions()}

    def matching(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that were made under these conditions, from the seeds of this run."""
        conditions = json.dumps(self.conditions(), sort_keys=True)
        seeds = range(self.seed, self.seed + self.defaults.num_seeds)

        def matches(row: Row) -> bool:
            return json.dumps({name: row.get(name) for name in CONDITIONS}, sort_keys=True) == conditions

        return [row for row in rows if row.get("seed") in seeds and matches(row)]

    def page_path(self, study: str) -> Path:
        """The study's table and figure, without suffix. Each set of conditions has its own."""
        preset = [] if self.preset == self.defaults.preset else [str(self.preset)]
        return self.folder / "-".join([study, *(_in_file_name(part) for part in (*preset, *self._changes()))])

    def page_remarks(self) -> list[str]:
        """How the rows of the page were made, as paragraphs."""
        tiny = ["A smoke run, tiny and on made-up tables: it shows that everything runs; its numbers mean nothing.\n"]
        return [f"Made with {self.in_words()}.\n", *(tiny if self.smoke else [])]

    def in_words(self) -> str:
        """The conditions and the seed: preset paper, burn_in=5000, seed=3, smoke."""
        return ", ".join([f"preset {self.preset}", *self._changes()])

    def _changes(self) -> list[str]:
        settings = [f"{name}={_as_in_json(value)}" for name, value in sorted(self.settings.items())]
        return settings + ([f"seed={self.seed}"] if self.seed else []) + (["smoke"] if self.smoke else [])


def _as_in_json(value: Any) -> Any:
    """1.0 becomes 1, a tuple a list."""
    if isinstance(value, list | tuple):
        return [_as_in_json(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_file_name(text: str) -> str:
    """A short part of a file name, different for different texts."""
    plain = re.sub(r"[^\w.-]+", "-", text)
    unambiguous = len(plain) <= 40 and not re.search(r"[^\w.=-]", text)
    return plain if unambiguous else f"{plain[:30]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def select(
    what: str, asked: Sequence[Any] | None, known: Sequence[Any], default: Sequence[Any] | None = None
) -> list[Any]:
    """The items asked for, in the order of ``known``; else the default ones, or all if there is no default."""
    unknown = [item for item in asked or () if item not in known]
    if unknown:
        raise InputError(f"unknown {what} {unknown[0]!r}: choose from {', '.join(map(str, known))}")
    wanted = asked or default or known
    return [item for item in known if item in wanted]
