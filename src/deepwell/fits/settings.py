"""Settings of a fit: one table to read."""

from dataclasses import dataclass
from typing import Any

from deepwell.errors import InputError
from deepwell.inference.problem import Config
from deepwell.inference.registry import SAMPLES_THETA, SHARE_THETA, VARIATIONAL
from deepwell.inference.sghmc import Dynamics
from deepwell.model.initial import Architecture
from deepwell.model.priors import Priors

NUMBERS, COUNTS = ("gaussian", "student-t", "heteroscedastic"), ("poisson",)
CLASSES = ("robust-max", "softmax", "bernoulli", "bernoulli-logit")
LIKELIHOODS = (*NUMBERS, *COUNTS, *CLASSES, "classes")
WIDEST_BY_DEFAULT = 30
INDUCING_SCALE = 0.4
"""Scale of the prior of inducing inputs around their start, up to 1,000 rows; it grows with the rows beyond."""

GLIDING_FRICTION, QUIET_FRICTION = 0.01, 0.02
"""alpha while sampling where no gradient has the noise of a minibatch, and where control variates take most of it."""

DECOUPLED_RATIO = 6
"""dsvi-decoupled has so many inducing points of the mean for each one of the variance: 300 and 50, as in the paper."""


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
    """alpha of SGHMC while sampling; None: 0.01 where every iteration sees all rows, 0.02 where control variates
    quieten the minibatches, else that of burn-in. Less friction carries a chain farther from one sample to the next,
    and heats it more by the noise of minibatches."""
    control_variates: bool = True
    """Where there are minibatches, sghmc, sghmc-naive and mcem take gradients while sampling relative to those at a
    fixed point, where the gradient over all rows is known: an iteration costs twice as much, and its noise heats the
    chain several times less. Not with robust-max, whose gradients are too unlike from point to point, nor with
    ``subtract_gradient_noise``."""
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
            widths=per_layer("width", width, self.depth - 1),
            num_inducing=per_layer("num_inducing", self.num_inducing, self.depth),
            kernels=per_layer("kernel", self.kernel, self.depth),
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
        control_variates = (
            self.control_variates
            and batch_size is not None
            and self.inference in SHARE_THETA
            and self.likelihood != "robust-max"
            and not self.subtract_gradient_noise
        )
        usual = QUIET_FRICTION if control_variates else GLIDING_FRICTION if batch_size is None else self.friction
        sampling_friction = usual if self.sampling_friction is None else self.sampling_friction
        return Config(
            method=self.inference,
            objective=objective,  # type: ignore[arg-type]
            inner_samples=self.inner_samples,
            batch_size=batch_size,
            dynamics=Dynamics(self.step_size, self.friction, self.subtract_gradient_noise),
            sampling_dynamics=Dynamics(self.step_size, sampling_friction, self.subtract_gradient_noise),
            control_variates=control_variates,
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
            return per_layer("num_variance_inducing", self.num_variance_inducing, self.depth)
        counts = per_layer("num_inducing", self.num_inducing, self.depth)
        return tuple(max(1, count // DECOUPLED_RATIO) for count in counts)


def per_layer(name: str, value: Any, count: int) -> tuple:
    """One value for each of ``count`` layers, from one for all of them or one each."""
    if not isinstance(value, tuple):
        return (value,) * count
    if len(value) != count:
        raise InputError(f"{name}={value!r} has {len(value)} entries, but {count} layers take one")
    return value
