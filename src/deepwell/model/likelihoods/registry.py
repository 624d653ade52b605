"""Likelihoods by name: which response each is for, and where it starts. A class and a line here add one."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deepwell.data.response import Kind, Response
from deepwell.errors import InputError
from deepwell.model.likelihoods.base import Likelihood
from deepwell.model.likelihoods.classes import LogitBernoulli, ProbitBernoulli, RobustMax, Softmax
from deepwell.model.likelihoods.counts import Poisson
from deepwell.model.likelihoods.numbers import Gaussian, HeteroscedasticGaussian, StudentT

FIRST_EXCESS_DEGREES = 4.0
CLASSES = "classes"
"""In place of a name: y is a class, and the number of classes decides which likelihood it has."""

Start = Callable[[Response, float], Likelihood]
"""(y, noise variance of standardised y) -> the likelihood before learning."""


class Entry(NamedTuple):
    """A likelihood's class, which knows the kind of its response, and its start."""

    cls: type[Likelihood]
    start: Start


def _full(y: Response, value: float) -> Float[Array, " p"]:
    """The same value for each target."""
    return jnp.asarray(np.full(len(y.names), value), float)


def _log_mean_count(y: Response) -> Float[Array, " p"]:
    least = 1.0 / len(y.values)  # all counts may be zero
    return jnp.asarray(np.log(np.maximum(np.mean(y.values, 0), least)), float)


def _num_classes(y: Response) -> int:
    return len(y.classes or ())


def _of_two_classes(cls: Callable[[], Likelihood]) -> Start:
    def start(y: Response, noise_variance: float) -> Likelihood:
        if _num_classes(y) != 2:
            raise InputError(f"a Bernoulli likelihood is for two classes, and y has {_num_classes(y)}")
        return cls()

    return start


LIKELIHOODS: dict[str, Entry] = {
    "gaussian": Entry(Gaussian, lambda y, noise: Gaussian(_full(y, math.log(noise)))),
    "student-t": Entry(
        StudentT, lambda y, noise: StudentT(_full(y, math.log(noise)), _full(y, math.log(FIRST_EXCESS_DEGREES)))
    ),
    "heteroscedastic": Entry(
        HeteroscedasticGaussian, lambda y, noise: HeteroscedasticGaussian(_full(y, math.log(noise)))
    ),
    "poisson": Entry(Poisson, lambda y, noise: Poisson(_log_mean_count(y))),
    "robust-max": Entry(RobustMax, lambda y, noise: RobustMax(_num_classes(y))),
    "softmax": Entry(Softmax, lambda y, noise: Softmax(_num_classes(y))),
    "bernoulli": Entry(ProbitBernoulli, _of_two_classes(ProbitBernoulli)),
    "bernoulli-logit": Entry(LogitBernoulli, _of_two_classes(LogitBernoulli)),
}


def names_for(kind: Kind) -> tuple[str, ...]:
    """The likelihoods of this kind of response."""
    return tuple(name for name, entry in LIKELIHOODS.items() if entry.cls.response == kind)


def response_kind(likelihood: str | Likelihood | None) -> Kind | None:
    """The kind of response that a likelihood is for; None if y decides."""
    if likelihood is None:
        return None
    if not isinstance(likelihood, str):
        return likelihood.response
    return "classes" if likelihood == CLASSES else LIKELIHOODS[likelihood].cls.response


def is_smooth(likelihood: str | Likelihood | None) -> bool:
    """Whether log p(y | f) has a gradient in f; true if y decides, because the default can then be a smooth one."""
    if likelihood is None or likelihood == CLASSES:
        return True
    return LIKELIHOODS[likelihood].cls.smooth if isinstance(likelihood, str) else likelihood.smooth


def default_likelihood(y: Response, smooth: bool = False) -> str:
    """By the kind of y and its number of classes; ``smooth`` asks for a smooth one."""
    if y.kind != "classes":
        return "poisson" if y.kind == "counts" else "gaussian"
    if _num_classes(y) == 2:
        return "bernoulli"
    return "softmax" if smooth else "robust-max"


def initial_likelihood(likelihood: str | Likelihood, y: Response, noise_variance: float) -> Likelihood:
    """The likelihood before learning; the noise variance is that of standardised y."""
    return LIKELIHOODS[likelihood].start(y, noise_variance) if isinstance(likelihood, str) else likelihood
