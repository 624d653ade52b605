"""Settings of a fit and the presets: one table to read, one place to check."""

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

from deepwell.data.errors import InputError
from deepwell.data.scaling import INPUT_SCALINGS
from deepwell.inference.methods import METHODS, SAMPLES_THETA, SHARE_THETA, VARIATIONAL
from deepwell.inference.problem import Config
from deepwell.inference.sghmc import Dynamics
from deepwell.model.deep_gp import OBJECTIVES
from deepwell.model.initialise import Architecture
from deepwell.model.kernels import KERNEL_NAMES, make_kernel
from deepwell.model.priors import Priors

INFERENCE = tuple(METHODS)
NUMBERS, COUNTS = ("gaussian", "student-t", "heteroscedastic"), ("poisson",)
CLASSES = ("robust-max", "softmax", "bernoulli", "bernoulli-logit")
LIKELIHOODS = (*NUMBERS, *COUNTS, *CLASSES, "classes")
WIDEST_BY_DEFAULT = 30
INDUCING_SCALE = 0.4
"""Scale of the prior of inducing inputs around their start, up to 1,000 rows; it grows with the rows beyond."""

GLIDING_FRICTION = 0.01
"""alpha while sampling where no gradient has the noise of a minibatch."""

DECOUPLED_MEAN, DECOUPLED_RATIO = 3, 6
"""dsvi-decoupled takes 3 times the preset's inducing points for the mean, and a sixth of those for the variance: 300
and 50 where others take 100, as in the paper."""


@dataclass(frozen=True)
class Settings:
    """How to fit. Defaults are those of preset ``default``; budgets are iterations, never seconds."""

    depth: int = 2
    """Number of GP layers; 1 is a sparse GP."""
    width: int | tuple[int, ...] | None = None
    """Outputs of each hidden layer, or one number a layer; None: as many as inputs, 2 to 30."""
    input_scaling: str | None = None
    """``columns``: each input by its own standard deviation; ``together``: all by one, as suits pixels and bits;
    None: together if there are 32 or more and all have the same minimum."""
    num_inducing: int | tuple[int, ...] = 100
    """Inducing points of each layer, or one number a layer."""
    kernel: str | tuple[str, ...] = "se"
    """se, matern12, matern32, matern52 or linear, joined by + and *; or one such a layer."""
    likelihood: str | None = None
    """gaussian, student-t or heteroscedastic for numbers, poisson for counts, robust-max, softmax, bernoulli or
    bernoulli-logit for classes; None: classes if y is text or truth values, else gaussian. ``classes`` leaves the
    choice among those of classes to the number of classes: bernoulli for two, robust-max for more (softmax in bnn)."""
    inference: str = "sghmc"
    """sghmc, sghmc-naive, mcem, sghmc-bayes, dsvi, dsvi-decoupled, bnn or nuts."""
    objective: str | None = None
    """``predictive``: log E p(y|f) over the last layer; ``expected``: E log p(y|f), the bound of variational
    inference; None: ``expected`` for dsvi, dsvi-decoupled and for classes, ``predictive`` otherwise."""
    inner_samples: int = 1
    """Propagations through the hidden layers averaged inside the logarithm."""
    priors: bool = True
    """Weak priors on lengthscales, variances, noise and inducing inputs; methods that sample these always have them."""
    num_chains: int = 1
    """Chains; those of sghmc, sghmc-naive and mcem share one theta."""
    burn_in: int = 12_000
    """Iterations before sampling; all iterations of dsvi."""
    num_samples: int = 100
    """Posterior samples kept of each chain."""
    spacing: int = 100
    """Iterations from one sample to the next."""
    batch_size: int = 1_000
    """Rows of a minibatch; all rows if there are no more."""
    window_size: int = 300
    """Window of Moving Window MCEM."""
    learning_rate: float = 0.01
    """Adam's rate for the hyperparameters."""
    step_size: float = 0.02
    """epsilon of SGHMC."""
    friction: float = 0.05
    """alpha of SGHMC in burn-in."""
    sampling_friction: float | None = None
    """alpha of SGHMC while sampling; None: 0.01 where every iteration sees all rows, that of burn-in where there are
    minibatches. Less friction carries a chain farther from one sample to the next, and heats it more by the noise of
    minibatches."""
    shortest_window: int = 1_000
    """Floor, in steps, under the preconditioner's adaptive window; 0: as published."""
    subtract_gradient_noise: bool = False
    """Take the paper's B-hat off the injected noise."""
    fixed: tuple[str, ...] = ()
    """Patterns of parameters that stay at their start, e.g. ``likelihood.log_noise_variance``."""
    hidden_variance: float = 0.01
    """Where the kernel variance of hidden layers starts."""
    output_variance: float = 1.0
    """Where the kernel variance of the last layer starts, for y of variance 1."""
    noise_variance: float = 0.01
    """Where the noise variance starts, for y of variance 1."""
    num_variance_inducing: int | None = None
    """Inducing points of the variances in dsvi-decoupled; None: a sixth of ``num_inducing``."""
    hidden_units: tuple[int, ...] = (50, 50, 50)
    """Units of the hidden layers of bnn; () is Bayesian linear regression."""
    dsvi_start: int = 0
    """Iterations of dsvi before the burn-in of sghmc, sghmc-naive or mcem."""
    e_steps: int = 500
    """Sampler steps of an E-step of mcem."""
    e_samples: int = 10
    """Samples an E-step of mcem keeps."""
    m_steps: int = 200
    """At most so many Adam steps in an M-step of mcem; fewer if it has converged."""
    jitter: float | None = None
    """Added to the diagonal of K_ZZ, relative to its mean; None: 1e-5 in float32, 1e-8 in float64."""

    def architecture(self, num_inputs: int) -> Architecture:
        """The shape of the model for this many inputs."""
        narrow = min(max(num_inputs, 2), WIDEST_BY_DEFAULT)
        width = narrow if self.width is None else self.width
        return Architecture(
            widths=_per_layer("width", width, self.depth - 1),
            num_inducing=_per_layer("num_inducing", self.num_inducing, self.depth),
            kernels=_per_layer("kernel", self.kernel, self.depth),
            hidden_variance=self.hidden_variance,
            output_variance=self.output_variance,
            jitter=self.jitter,
        )

    def config(self, num_rows: int) -> Config:
        """What the compiled programs need to know."""
        by_bound = self.inference in VARIATIONAL or self.likelihood in CLASSES
        objective = self.objective or ("expected" if by_bound else "predictive")
        priors = self.priors or self.inference in SAMPLES_THETA
        batch_size = None if self.batch_size >= num_rows or self.inference == "nuts" else self.batch_size
        gliding = GLIDING_FRICTION if batch_size is None else self.friction
        sampling_friction = gliding if self.sampling_friction is None else self.sampling_friction
        return Config(
            method=self.inference,
            objective=objective,  # type: ignore[arg-type]
            inner_samples=self.inner_samples,
            batch_size=batch_size,
            dynamics=Dynamics(self.step_size, self.friction, self.subtract_gradient_noise),
            sampling_dynamics=Dynamics(self.step_size, sampling_friction, self.subtract_gradient_noise),
            shortest_window=self.shortest_window,
            burn_in=self.burn_in,
            window_size=1 if self.inference in ("sghmc-naive", "mcem") else self.window_size,
            learning_rate=self.learning_rate,
            priors=Priors(inducing_scale=INDUCING_SCALE * max(1.0, num_rows / 1_000)) if priors else None,
            num_chains=self.num_chains,
            num_samples=self.num_samples,
            spacing=self.spacing,
            dsvi_start=self.dsvi_start,
            e_steps=self.e_steps,
            e_samples=self.e_samples,
            m_steps=self.m_steps,
        )

    def variance_inducing(self) -> tuple[int, ...]:
        """Inducing points of the variances of each layer, in dsvi-decoupled."""
        if self.num_variance_inducing is not None:
            return _per_layer("num_variance_inducing", self.num_variance_inducing, self.depth)
        counts = _per_layer("num_inducing", self.num_inducing, self.depth)
        return tuple(max(1, count // DECOUPLED_RATIO) for count in counts)


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


def _per_layer(name: str, value: Any, count: int) -> tuple:
    if not isinstance(value, tuple):
        return (value,) * count
    if len(value) != count:
        raise InputError(f"{name}={value!r} has {len(value)} entries, but {count} layers take one")
    return value


def _check(s: Settings) -> None:
    for name in POSITIVE_INTEGERS:
        _require_positive_integer(name, getattr(s, name))
    if s.depth > DEEPEST:
        raise InputError(f"depth={s.depth!r} must be at most {DEEPEST}")
    for name in POSITIVE_NUMBERS:
        value = getattr(s, name)
        if not _is_number(value) or not 0.0 < value < float("inf"):
            raise InputError(f"{name}={value!r} must be a positive number")
    for name in ("priors", "subtract_gradient_noise"):
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
    for width in _per_layer("width", 1 if s.width is None else s.width, s.depth - 1):
        _require_positive_integer("width", width)
    for count in _per_layer("num_inducing", s.num_inducing, s.depth):
        _require_positive_integer("num_inducing", count)
    for count in s.variance_inducing():
        _require_positive_integer("num_variance_inducing", count)
    for expression in _per_layer("kernel", s.kernel, s.depth):
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
