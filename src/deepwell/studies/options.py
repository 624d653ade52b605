"""What every study is told: where its rows go, what of it to run, how."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax

from deepwell.data.benchmarks import Dataset, load
from deepwell.errors import InputError
from deepwell.fits.prepare import checked_seed
from deepwell.fits.presets import make_settings
from deepwell.fits.settings import Settings
from deepwell.studies.rows import Row
from deepwell.studies.synthetic import made_table

HOW = ("preset", "settings", "smoke")
"""Fields of every row that say how it was made."""
SMOKE: dict[str, Any] = {"num_inducing": 8, "width": 2, "burn_in": 20, "num_samples": 20, "spacing": 2}
"""Settings of a smoke run; the same in all studies, so that they share compiled programs."""
REPORTED = tuple(range(10))
"""Splits that tables and figures show; those from 10 on are for choosing settings, and have rows only."""
ON_A_GPU, ON_A_CPU = 10, 1
"""Splits that run as one program: a GPU does ten in three to four times the time of one, a CPU gains nothing."""


@dataclass(frozen=True)
class Options:
    """None: everything, or what suits the study."""

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
    usual_preset: str | None = None
    smoke_settings: dict[str, Any] = field(default_factory=lambda: SMOKE)
    num_seeds: int = 1

    def of_study(
        self, preset: str, own: Sequence[str] = (), smoke_settings: dict[str, Any] = SMOKE, num_seeds: int = 1
    ) -> "Options":
        """With what a study takes if nothing else was asked for: the preset, the settings of a smoke run, and how
        many seeds, from the one asked for, its rows have; ``own`` settings are the study's, by which its rows are
        named. A setting that is None is the preset's."""
        for name in own:
            if name in self.settings:
                raise InputError(f"--set {name}={self.settings[name]}: this study sets {name} itself")
        checked_seed(self.seed + max(num_seeds - 1, *(self.splits or REPORTED)))
        asked = {name: value for name, value in self.settings.items() if value is not None}
        return dataclasses.replace(
            self, preset=self.preset or preset, usual_preset=preset, smoke_settings=smoke_settings,
            num_seeds=num_seeds, settings=asked,
        )  # fmt: skip

    def settings_of(self, method: dict[str, Any]) -> Settings:
        """A method's settings with those asked for in their place; an error if they do not go together, before anything
        runs."""
        return make_settings(str(self.preset), **{**method, **self.how()["settings"]})

    def members_of_a_group(self) -> int:
        """As asked, or as suits the device."""
        device = jax.config.jax_default_device  # type: ignore[attr-defined]
        platform = jax.default_backend() if device is None else getattr(device, "platform", device)
        return self.group_size or (ON_A_CPU if platform == "cpu" else ON_A_GPU)

    def table(self, name: str) -> Dataset:
        """A benchmark set, or one made up in its place."""
        return _loaded(name, self.smoke)

    def how(self) -> Row:
        """The part of a row's key that says how it was made, equal settings in one form; in a smoke run its settings
        replace the preset's."""
        settings = {**(self.smoke_settings if self.smoke else {}), **self.settings}
        same = {name: _one_form(value) for name, value in sorted(settings.items())}
        return {"preset": self.preset, "settings": same, "smoke": self.smoke}

    def made_so(self, rows: Sequence[Row]) -> list[Row]:
        """Those of the rows that this command, or the same before it, has made."""
        how, seeds = json.dumps(self.how(), sort_keys=True), range(self.seed, self.seed + self.num_seeds)

        def so(row: Row) -> bool:
            return json.dumps({name: row.get(name) for name in HOW}, sort_keys=True) == how

        return [row for row in rows if row.get("seed") in seeds and so(row)]

    def stem(self, study: str) -> Path:
        """Of the study's table and figure: rows made in another way have their own."""
        preset = [] if self.preset == self.usual_preset else [str(self.preset)]
        return self.folder / "-".join([study, *(_in_a_name(way) for way in (*preset, *self._unusual()))])

    def remarks(self) -> list[str]:
        """How the rows of the study's page were made, as paragraphs."""
        tiny = ["A smoke run, tiny and on made-up tables: it shows that all runs, and its figures mean nothing.\n"]
        return [f"Made with {self.in_words()}.\n", *(tiny if self.smoke else [])]

    def in_words(self) -> str:
        """How rows are made: preset paper, burn_in=5000, seed=3, smoke."""
        return ", ".join([f"preset {self.preset}", *self._unusual()])

    def _unusual(self) -> list[str]:
        settings = [f"{name}={_one_form(value)}" for name, value in sorted(self.settings.items())]
        return settings + ([f"seed={self.seed}"] if self.seed else []) + (["smoke"] if self.smoke else [])


def _one_form(value: Any) -> Any:
    """1.0 is 1, and a tuple a list, as in JSON."""
    if isinstance(value, list | tuple):
        return [_one_form(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_a_name(way: str) -> str:
    """For a file: short, and different ways differently."""
    plain = re.sub(r"[^\w.-]+", "-", way)
    clear = len(plain) <= 40 and not re.search(r"[^\w.=-]", way)
    return plain if clear else f"{plain[:30]}-{hashlib.sha256(way.encode()).hexdigest()[:6]}"


@lru_cache(1)
def _loaded(name: str, smoke: bool) -> Dataset:
    return made_table(name) if smoke else load(name)


def chosen(what: str, asked: Sequence[Any] | None, known: Sequence[Any], usual: Sequence[Any] | None = None) -> list:
    """Those asked for, in the order in which they are known; or the usual ones, all if nothing else is said."""
    unknown = [item for item in asked or () if item not in known]
    if unknown:
        raise InputError(f"unknown {what} {unknown[0]!r}: choose from {', '.join(map(str, known))}")
    wanted = asked or usual or known
    return [item for item in known if item in wanted]
