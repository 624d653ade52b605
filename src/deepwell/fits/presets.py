"""Presets, and settings made of a preset and what the user says, all checked in one place."""

import dataclasses
import difflib
from typing import Any

from deepwell.data.scaling import INPUT_SCALINGS
from deepwell.errors import InputError
from deepwell.fits.settings import LIKELIHOODS, Settings, per_layer
from deepwell.inference.registry import METHODS, SHARE_THETA
from deepwell.model.deep_gp import OBJECTIVES
from deepwell.model.kernels import KERNEL_NAMES, make_kernel

INFERENCE = tuple(METHODS)
DECOUPLED_MEAN = 3
"""dsvi-decoupled takes so many times the preset's inducing points for the mean: 300 where others take 100, as in the
paper."""

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "best": {"burn_in": 20_000, "num_samples": 200, "batch_size": 10_000},
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

METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    "dsvi": {"hidden_variance": 1.0, "noise_variance": 0.1},
    "dsvi-decoupled": {"hidden_variance": 1.0, "noise_variance": 0.1},
    "bnn": {"shortest_window": 1_000},
    "nuts": {"burn_in": 1_000, "num_samples": 500, "spacing": 1},
}
"""Settings that replace the preset's for one inference method."""

DEEPEST, LONGEST_KERNEL = 100, 200
"""Layers, and characters of a kernel's expression, that are accepted."""

POSITIVE_INTEGERS = (
    "depth", "inner_samples", "num_chains", "burn_in", "num_samples", "spacing", "batch_size", "window_size",
    "e_steps", "e_samples", "m_steps",
)  # fmt: skip
POSITIVE_NUMBERS = (
    "learning_rate", "step_size", "friction", "hidden_variance", "output_variance",
    "noise_variance",
)  # fmt: skip


def make_settings(preset: str = "default", **overrides: Any) -> Settings:
    """A preset with some settings replaced (None: the preset's), all checked."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose from {', '.join(PRESETS)}")
    known = {field.name for field in dataclasses.fields(Settings)}
    for name in overrides:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f": did you mean {near[0]!r}?" if near else f": choose from {', '.join(sorted(known))}"
            raise InputError(f"unknown option {name!r}{hint}")
    given = {name: plain(value) for name, value in overrides.items() if value is not None}
    method = given.get("inference", Settings.inference)
    chosen = {**PRESETS[preset], **METHOD_DEFAULTS.get(str(method), {}), **given}
    if method == "dsvi-decoupled" and "num_inducing" not in given:
        chosen["num_inducing"] = DECOUPLED_MEAN * chosen.get("num_inducing", Settings.num_inducing)
    settings = Settings(**chosen)
    _check(settings)
    return settings


def plain(value: Any) -> Any:
    """numpy's numbers as Python's, lists and arrays as tuples: settings are hashed, compared and saved."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(plain(item) for item in value) if isinstance(value, list | tuple) else value


def _check(s: Settings) -> None:
    for name in POSITIVE_INTEGERS:
        _require_positive_integer(name, getattr(s, name))
    if s.depth > DEEPEST:
        raise InputError(f"depth={s.depth!r} must be at most {DEEPEST}")
    for name in POSITIVE_NUMBERS:
        value = getattr(s, name)
        if not _is_number(value) or not 0.0 < value < float("inf"):
            raise InputError(f"{name}={value!r} must be a positive number")
    for name in ("priors", "subtract_gradient_noise", "control_variates"):
        if not isinstance(getattr(s, name), bool):
            raise InputError(f"{name}={getattr(s, name)!r} must be True or False")
    if not isinstance(s.fixed, tuple) or not all(isinstance(pattern, str) for pattern in s.fixed):
        raise InputError(f"fixed={s.fixed!r} must be a list of parameter names or patterns")
    if s.friction >= 1.0:
        raise InputError(f"friction={s.friction!r} must be below 1")
    for name in ("jitter", "sampling_friction"):
        value = getattr(s, name)
        if value is not None and (not _is_number(value) or not 0.0 < value < 1.0):
            raise InputError(f"{name}={value!r} must lie between 0 and 1")
    for name in ("shortest_window", "dsvi_start"):
        value = getattr(s, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{name}={value!r} must be an integer, 0 or more")
    if s.inference not in INFERENCE:
        raise InputError(f"unknown inference {s.inference!r}: choose from {', '.join(INFERENCE)}")
    if s.input_scaling is not None and s.input_scaling not in INPUT_SCALINGS:
        raise InputError(f"unknown input_scaling {s.input_scaling!r}: choose from {', '.join(INPUT_SCALINGS)}")
    if s.likelihood is not None and s.likelihood not in LIKELIHOODS:
        raise InputError(f"unknown likelihood {s.likelihood!r}: choose from {', '.join(LIKELIHOODS)}")
    if s.likelihood == "robust-max" and s.inference == "bnn":
        raise InputError("likelihood='robust-max' has no gradient for bnn to follow: use softmax")
    if s.dsvi_start and s.inference not in SHARE_THETA:
        raise InputError(f"dsvi_start is for {', '.join(SHARE_THETA)}, not for {s.inference}")
    if not isinstance(s.hidden_units, tuple):
        raise InputError(f"hidden_units={s.hidden_units!r} must be a list of numbers of units")
    for units in s.hidden_units:
        _require_positive_integer("hidden_units", units)
    if s.objective is not None and s.objective not in OBJECTIVES:
        raise InputError(f"unknown objective {s.objective!r}: choose from {', '.join(OBJECTIVES)}")
    for width in per_layer("width", 1 if s.width is None else s.width, s.depth - 1):
        _require_positive_integer("width", width)
    for count in per_layer("num_inducing", s.num_inducing, s.depth):
        _require_positive_integer("num_inducing", count)
    for count in s.variance_inducing():
        _require_positive_integer("num_variance_inducing", count)
    for expression in per_layer("kernel", s.kernel, s.depth):
        if len(str(expression)) > LONGEST_KERNEL:
            raise InputError(f"the kernel {str(expression)[:40]!r}... must have at most {LONGEST_KERNEL} characters")
        try:
            make_kernel(expression, 1, 1.0, 1.0)
        except (ValueError, AttributeError) as error:
            names = ", ".join(KERNEL_NAMES)
            raise InputError(f"unknown kernel {expression!r}: join names from {names} by + and *") from error


def _require_positive_integer(name: str, value: Any) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise InputError(f"{name}={value!r} must be a positive integer")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
