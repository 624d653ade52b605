"""From a target and the settings to a likelihood: what y is, how it is scaled, where its noise starts."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from deepwell.data.response import Targets, are_labels, as_classes, as_counts, as_numbers
from deepwell.data.scaling import Scaling, fit_scaling
from deepwell.errors import InputError
from deepwell.fits.settings import CLASSES, COUNTS, NUMBERS, Settings
from deepwell.model import likelihoods
from deepwell.model.likelihoods import Likelihood

FIRST_EXCESS_DEGREES = 4.0


def read_targets(y: Any, settings: Settings, classes: Sequence[Any] | None = None) -> Targets:
    """y as the likelihood needs it; without a likelihood, text and truth values are classes and the rest numbers."""
    if _asks_for_classes(settings) or (settings.likelihood is None and (classes is not None or are_labels(y))):
        return as_classes(y, classes)
    if classes is not None:
        raise InputError(f"classes are given, but likelihood={settings.likelihood!r} is none of classes")
    return as_counts(y) if settings.likelihood in COUNTS else as_numbers(y)


def _asks_for_classes(settings: Settings) -> bool:
    return settings.likelihood in (*CLASSES, "classes")


def with_likelihood(settings: Settings, targets: Targets) -> Settings:
    """Settings that name the likelihood."""
    if settings.likelihood not in (None, "classes"):
        return settings
    if targets.classes is None:
        return dataclasses.replace(settings, likelihood="gaussian")
    many = "softmax" if settings.inference == "bnn" else "robust-max"
    return dataclasses.replace(settings, likelihood="bernoulli" if len(targets.classes) == 2 else many)


def union_of_classes(ys: Sequence[Any], settings: Settings) -> tuple[Any, ...] | None:
    """All classes of several targets, None if they are no classes."""
    if not _asks_for_classes(settings) and not (settings.likelihood is None and are_labels(ys[0])):
        return None
    return as_classes(np.concatenate([np.ravel(np.asarray(y, object)) for y in ys])).classes


def target_scaling(targets: Targets, settings: Settings) -> Scaling:
    """Numbers are standardised; counts and classes stay as they are."""
    if settings.likelihood in NUMBERS:
        return fit_scaling(targets.values)
    return Scaling(np.zeros(targets.values.shape[1]), np.ones(targets.values.shape[1]))


def make_likelihood(settings: Settings, targets: Targets) -> Likelihood:
    """The likelihood before learning."""
    count = targets.values.shape[1]
    noise = jnp.asarray(np.full(count, math.log(settings.noise_variance)), float)
    if settings.likelihood == "gaussian":
        return likelihoods.Gaussian(noise)
    if settings.likelihood == "student-t":
        return likelihoods.StudentT(noise, jnp.asarray(np.full(count, math.log(FIRST_EXCESS_DEGREES)), float))
    if settings.likelihood == "heteroscedastic":
        return likelihoods.HeteroscedasticGaussian(noise)
    if settings.likelihood == "poisson":
        least = 1.0 / len(targets.values)  # all counts may be zero
        return likelihoods.Poisson(jnp.asarray(np.log(np.maximum(np.mean(targets.values, 0), least)), float))
    num_classes = len(targets.classes or ())
    if settings.likelihood in ("bernoulli", "bernoulli-logit"):
        if num_classes != 2:
            raise InputError(f"likelihood={settings.likelihood!r} is for two classes, and y has {num_classes}")
        return likelihoods.ProbitBernoulli() if settings.likelihood == "bernoulli" else likelihoods.LogitBernoulli()
    if settings.likelihood == "softmax":
        return likelihoods.Softmax(num_classes)
    return likelihoods.RobustMax(num_classes)
