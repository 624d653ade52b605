"""Settings of a fit: one table to read. Each field has its default, its check and its meaning."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from deepwell.data.scaling import INPUT_SCALINGS
from deepwell.errors import InputError
from deepwell.fits.checks import (
    Check,
    below_one,
    flag,
    fraction,
    many,
    names,
    one_of,
    one_or_many,
    positive,
    schedule,
    whole,
)
from deepwell.inference.config import Config, Rates, make_rates
from deepwell.inference.method import Traits
from deepwell.inference.registry import method_named, method_names
from deepwell.model.deep_gp import OBJECTIVES
from deepwell.model.initial import Architecture
from deepwell.model.kernels import Kernel, check_kernel
from deepwell.model.likelihoods import Likelihood, registry
from deepwell.model.likelihoods.registry import is_smooth, names_for, response_kind
from deepwell.model.priors import Priors

NUMBERS, COUNTS, CLASSES = names_for("numbers"), names_for("counts"), names_for("classes")
WIDEST_BY_DEFAULT = 30
INDUCING_SCALE = 0.4
"""Scale of the prior of inducing inputs around their start, up to 1,000 rows; it grows with the rows beyond."""
GLIDING_FRICTION, QUIET_FRICTION = 0.01, 0.02
"""alpha while sampling where no gradient has the noise of a minibatch, and where control variates take most of it."""
DECOUPLED_RATIO = 6
"""dsvi-decoupled has so many inducing points of the mean for each one of the variance: 300 and 50, as in the paper."""
AUTO = "auto"
DEEPEST = 100
"""Layers that are accepted."""


def setting(default: Any, check: Check, meaning: str) -> Any:
    """A field of ``Settings``; ``None`` passes the check where it is the default."""
    return dataclasses.field(default=default, metadata={"check": check, "meaning": meaning})


def _kernel(name: str, value: Any) -> None:
    check_kernel(value)


def _likelihood(name: str, value: Any) -> None:
    if not isinstance(value, Likelihood):
        one_of(lambda: (*registry.LIKELIHOODS, registry.CLASSES))(name, value)


def _inference(name: str, value: Any) -> None:
    method_named(value)


def _local(name: str, value: Any) -> None:
    if not isinstance(value, bool) and value != AUTO:
        raise InputError(f"{name}={value!r} must be True, False or {AUTO!r}")


@dataclass(frozen=True)
class Settings:
    """How to fit. Defaults are those of preset ``default``; budgets are iterations, never seconds."""

    depth: int = setting(2, whole(1, DEEPEST), "Number of GP layers; 1 is a sparse GP.")
    width: int | tuple[int, ...] | None = setting(
        None, one_or_many(whole()), "Outputs of each hidden layer, or one number a layer; None: the inputs, 2 to 30."
    )
    input_scaling: str | None = setting(
        None,
        one_of(lambda: INPUT_SCALINGS),
        "``columns``: each input by its own standard deviation; ``together``: all by one, which suits pixels and "
        "bits; None: together if there are 32 or more and all have the same minimum.",
    )
    num_inducing: int | tuple[int, ...] = setting(
        100, one_or_many(whole()), "Inducing points of each layer, or one number a layer."
    )
    kernel: str | Kernel | tuple[str | Kernel, ...] = setting(
        "se",
        one_or_many(_kernel),
        "se, matern12, matern32, matern52 or linear, joined by + and *; or a ``Kernel`` of your own; or one a layer.",
    )
    likelihood: str | Likelihood | None = setting(
        None,
        _likelihood,
        "gaussian, student-t or heteroscedastic for numbers, poisson for counts, robust-max, softmax, bernoulli or "
        "bernoulli-logit for classes; or a ``Likelihood`` of your own. None: classes if y is text or truth values, "
        "else gaussian. ``classes`` chooses by the number of classes: bernoulli for two, robust-max for more "
        "(softmax where the method needs a smooth likelihood).",
    )
    inference: str = setting(
        "sghmc", _inference, "sghmc, sghmc-naive, mcem, sghmc-bayes, dsvi, dsvi-decoupled, bnn, nuts, or your own."
    )
    objective: str | None = setting(
        None,
        one_of(lambda: OBJECTIVES),
        "``predictive``: log E p(y|f) over the last layer; ``expected``: E log p(y|f), the bound of variational "
        "inference; None: ``expected`` for dsvi, dsvi-decoupled and for classes, ``predictive`` otherwise.",
    )
    inner_samples: int = setting(
        1, whole(), "Propagations through the hidden layers that are averaged inside the logarithm."
    )
    priors: bool = setting(
        True,
        flag,
        "Weak priors on lengthscales, variances, noise and inducing inputs. Methods that sample these always have "
        "them.",
    )
    num_chains: int = setting(1, whole(), "Chains; those of sghmc, sghmc-naive and mcem share one theta.")
    burn_in: int = setting(12_000, whole(), "Iterations before sampling; all iterations of dsvi.")
    num_samples: int = setting(100, whole(), "Posterior samples kept of each chain.")
    spacing: int = setting(100, whole(), "Iterations from one sample to the next.")
    batch_size: int = setting(1_000, whole(), "Rows of a minibatch; all rows if there are no more.")
    window_size: int = setting(300, whole(), "Window of Moving Window MCEM.")
    learning_rate: float | tuple[float, ...] = setting(
        0.01,
        schedule(positive),
        "Adam's rate for the hyperparameters; several are a schedule, interpolated over burn-in.",
    )
    step_size: float | tuple[float, ...] = setting(
        0.02,
        schedule(positive),
        "epsilon of SGHMC; several are a schedule over burn-in, and sampling goes on with the last.",
    )
    friction: float | tuple[float, ...] = setting(
        0.05, schedule(below_one), "alpha of SGHMC in burn-in; several are a schedule."
    )
    sampling_friction: float | None = setting(
        None,
        fraction,
        "alpha of SGHMC while sampling; None: 0.01 where every iteration sees all rows, 0.02 where control variates "
        "quieten the minibatches, else that of burn-in. Less friction carries a chain farther from one sample to the "
        "next, and heats it more by the noise of minibatches.",
    )
    control_variates: bool = setting(
        True,
        flag,
        "With minibatches, methods that share theta take gradients while sampling relative to those at a fixed point, "
        "where the gradient over all rows is known: an iteration costs twice as much, and its noise heats the chain "
        "several times less. Not with robust-max, whose gradients differ too much from point to point, nor with "
        "``subtract_gradient_noise``.",
    )
    shortest_window: int = setting(
        1_000, whole(0), "Floor, in steps, under the preconditioner's adaptive window; 0: as published."
    )
    subtract_gradient_noise: bool = setting(False, flag, "Take the paper's B-hat off the injected noise.")
    fixed: tuple[str, ...] = setting(
        (), names, "Patterns of parameters that stay at their start, e.g. ``likelihood.log_noise_variance``."
    )
    hidden_variance: float = setting(0.01, positive, "Where the kernel variance of hidden layers starts.")
    output_variance: float = setting(
        1.0, positive, "Where the kernel variance of the last layer starts, for y of variance 1."
    )
    noise_variance: float = setting(0.01, positive, "Where the noise variance starts, for y of variance 1.")
    num_variance_inducing: int | tuple[int, ...] | None = setting(
        None,
        one_or_many(whole()),
        "Inducing points of the variances in dsvi-decoupled; None: a sixth of ``num_inducing``.",
    )
    hidden_units: tuple[int, ...] = setting(
        (50, 50, 50), many(whole(), "numbers of units"), "Units of the hidden layers of bnn; () is linear regression."
    )
    dsvi_start: int = setting(
        0, whole(0), "Iterations of dsvi before the burn-in of a method that shares theta among its chains."
    )
    e_steps: int = setting(500, whole(), "Sampler steps of an E-step of mcem.")
    e_samples: int = setting(10, whole(), "Samples that an E-step of mcem keeps.")
    m_steps: int = setting(200, whole(), "At most so many Adam steps in an M-step of mcem; fewer if it has converged.")
    local: bool | str = setting(
        False,
        _local,
        "A local part beside the inducing points, for numbers: what they miss at a row is read off the residuals of "
        "its nearest training rows. ``auto``: if it improves the leave-one-out density of the training rows. Model "
        "files then hold these rows.",
    )
    jitter: float | None = setting(
        None,
        fraction,
        "Added to the diagonal of K_ZZ, relative to its mean; None: 1e-5 in float32, 1e-8 in float64.",
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                field.metadata["check"](field.name, value)
        if self.traits.needs_smooth_likelihood and not is_smooth(self.likelihood):
            raise InputError(
                f"likelihood={self.likelihood!r} has no gradient for {self.inference} to follow: use softmax"
            )
        if self.dsvi_start and not self.traits.shares_theta:
            sharing = ", ".join(name for name in method_names() if method_named(name).traits.shares_theta)
            raise InputError(f"dsvi_start is for {sharing}, not for {self.inference}")
        for name, count in (("width", self.depth - 1), ("num_inducing", self.depth), ("kernel", self.depth)):
            per_layer(name, getattr(self, name), count)
        self.variance_inducing()

    @property
    def traits(self) -> Traits:
        """Of the inference method."""
        return method_named(self.inference).traits

    def architecture(self, num_inputs: int) -> Architecture:
        """The shape of the model for this many inputs."""
        narrow = min(max(num_inputs, 2), WIDEST_BY_DEFAULT)
        width = narrow if self.width is None else self.width
        return Architecture(
            widths=per_layer("width", width, self.depth - 1),
            num_inducing=per_layer("num_inducing", self.num_inducing, self.depth),
            kernels=per_layer("kernel", self.kernel, self.depth),
            hidden_variance=self.hidden_variance,
            output_variance=self.output_variance,
            jitter=self.jitter,
        )

    def config(self, num_rows: int) -> Config:
        """What shapes the compiled programs."""
        traits = self.traits
        usual = "expected" if response_kind(self.likelihood) == "classes" else traits.objective
        priors = self.priors or traits.samples_theta
        batch_size = self.batch_size if traits.takes_minibatches and self.batch_size < num_rows else None
        values = {name: traits.imposed.get(name, getattr(self, name)) for name in Config._fields if hasattr(self, name)}
        values |= {
            "method": self.inference,
            "objective": self.objective or usual,
            "batch_size": batch_size,
            "control_variates": (
                self.control_variates
                and batch_size is not None
                and traits.shares_theta
                and is_smooth(self.likelihood)
                and not self.subtract_gradient_noise
            ),
            "priors": Priors(inducing_scale=INDUCING_SCALE * max(1.0, num_rows / 1_000)) if priors else None,
        }
        return Config(**values)

    def rates(self, num_rows: int) -> Rates:
        """Step size, friction and learning rate: arguments of the compiled programs."""
        config = self.config(num_rows)
        usual = self.friction[-1] if isinstance(self.friction, tuple) else self.friction
        if config.batch_size is None:
            usual = GLIDING_FRICTION
        elif config.control_variates:
            usual = QUIET_FRICTION
        sampling = usual if self.sampling_friction is None else self.sampling_friction
        return make_rates(self.step_size, self.friction, sampling, self.learning_rate)

    def variance_inducing(self) -> tuple[int, ...]:
        """Inducing points of the variances of each layer, in dsvi-decoupled."""
        if self.num_variance_inducing is not None:
            return per_layer("num_variance_inducing", self.num_variance_inducing, self.depth)
        counts = per_layer("num_inducing", self.num_inducing, self.depth)
        return tuple(max(1, count // DECOUPLED_RATIO) for count in counts)


def per_layer(name: str, value: Any, count: int) -> tuple[Any, ...]:
    """One value for each of ``count`` layers, from one for all of them or one each."""
    if not isinstance(value, tuple):
        return (value,) * count
    if len(value) != count:
        raise InputError(f"{name}={value!r} has {len(value)} entries, but {count} layers take one")
    return value
