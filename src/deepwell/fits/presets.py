"""Presets, and settings made of a preset and what the user says."""

import dataclasses
import difflib
from typing import Any

from deepwell.errors import InputError
from deepwell.fits.settings import Settings
from deepwell.inference.registry import method_named

PRESETS: dict[str, dict[str, Any]] = {
    "default": {"local": "auto"},
    "best": {"local": "auto", "burn_in": 20_000, "num_samples": 200, "batch_size": 10_000},
    "paper": {
        "width": 10,
        "num_inducing": 100,
        "batch_size": 10_000,
        "burn_in": 20_000,
        "num_samples": 200,
        "spacing": 50,
        "window_size": 300,
        "step_size": 0.01,
        "sampling_friction": 0.05,
        "control_variates": False,
        "priors": False,
        "shortest_window": 0,
    },
    "quick": {
        "num_inducing": 30,
        "batch_size": 256,
        "burn_in": 1_200,
        "num_samples": 30,
        "spacing": 10,
        "window_size": 100,
        "learning_rate": 0.02,
        "step_size": 0.03,
        "shortest_window": 100,
    },
}


def make_settings(preset: str = "default", **overrides: Any) -> Settings:
    """A preset with some settings replaced (None: the preset's); what the method prefers comes between the two."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose from {', '.join(PRESETS)}")
    known = {field.name for field in dataclasses.fields(Settings)}
    for name in overrides:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f": did you mean {near[0]!r}?" if near else f": choose from {', '.join(sorted(known))}"
            raise InputError(f"unknown option {name!r}{hint}")
    given = {name: plain(value) for name, value in overrides.items() if value is not None}
    traits = method_named(given.get("inference", Settings.inference)).traits
    chosen = {**PRESETS[preset], **traits.defaults, **given}
    if "num_inducing" not in given:
        chosen["num_inducing"] = traits.inducing_factor * chosen.get("num_inducing", Settings.num_inducing)
    return Settings(**chosen)


def plain(value: Any) -> Any:
    """numpy's numbers as Python's, lists and arrays as tuples: settings are compared and saved."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(plain(item) for item in value) if isinstance(value, list | tuple) else value
