"""Where a fit starts: from scratch, from a model of the user's own, or from what another fit found."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from deepwell.errors import InputError, require
from deepwell.fits.fitted import FittedModel
from deepwell.fits.presets import plain
from deepwell.fits.settings import Settings
from deepwell.inference.problem import Blueprint
from deepwell.inference.registry import method_named
from deepwell.model.deep_gp import DeepGP
from deepwell.model.layers import InducingLayer
from deepwell.model.likelihoods import Likelihood

SHAPE = ("depth", "width", "num_inducing", "kernel", "hidden_units", "likelihood")
"""Settings that a start decides."""
OwnModel = DeepGP | Callable[[np.ndarray], DeepGP]
"""A deep GP in standardised units, or a function that makes one from the standardised inputs."""


def fitted_start(init: Any) -> FittedModel | None:
    """A fitted model, taken out of an estimator if it is in one."""
    model = getattr(init, "model_", init)
    if model is not None and not isinstance(model, FittedModel):
        raise InputError(f"init={init!r} is neither a fitted model nor a fitted estimator")
    return model


def with_shape_of(init: FittedModel, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the shape of the model that is the start; it cannot be had in another."""
    shape = {name: getattr(init.settings, name) for name in SHAPE}
    if settings.get("likelihood") == "classes" and init.classes is not None:
        settings = {**settings, "likelihood": None}
    for name, value in shape.items():
        if settings.get(name) is not None and plain(settings[name]) != value:
            raise InputError(f"{name}={settings[name]!r} cannot be had: init was fitted with {name}={value!r}")
    return {**settings, **shape}


def refuse_shape_beside_model(settings: dict[str, Any]) -> None:
    """The shape of the user's own model cannot be chosen by settings as well."""
    for name in SHAPE:
        if settings.get(name) is not None:
            raise InputError(f"{name}={settings[name]!r} cannot be had together with model=: the model decides it")


def with_shape_of_model(model: DeepGP, settings: Settings) -> Settings:
    """Settings that say what the user's own model is."""
    widths, counts = ([getattr(layer, name) for layer in model.layers] for name in ("width", "num_features"))
    kernels = tuple(layer.kernel for layer in model.layers if isinstance(layer, InducingLayer))
    return dataclasses.replace(
        settings,
        depth=model.depth,
        width=tuple(widths[:-1]),
        num_inducing=tuple(counts),
        kernel=kernels if len(kernels) == model.depth else settings.kernel,
        likelihood=model.likelihood,
    )


def make_problem(
    rng: np.random.Generator,
    X: np.ndarray,
    num_targets: int,
    settings: Settings,
    likelihood: Likelihood,
    init: FittedModel | None = None,
    model: DeepGP | None = None,
) -> Any:
    """The problem that the chosen method solves, for standardised X."""
    method = method_named(settings.inference)
    latents = likelihood.num_latents(num_targets)
    if model is not None and model.layers[-1].width != latents:
        width = model.layers[-1].width
        raise InputError(f"the last layer of model= has {width} outputs, but its likelihood needs {latents}")
    if method.traits.requires is not None:
        require(method.traits.requires, f"inference={settings.inference!r}")
    return method.problem(
        Blueprint(
            rng=rng,
            X=X,
            num_targets=num_targets,
            likelihood=likelihood,
            architecture=settings.architecture(X.shape[1]),
            model=model,
            fixed=settings.fixed,
            num_variance_inducing=settings.variance_inducing(),
            hidden_units=settings.hidden_units,
            num_chains=settings.num_chains,
            dsvi_start=settings.dsvi_start > 0,
            inference=settings.inference,
            init=None if init is None else init.posterior,
            init_inference="" if init is None else init.settings.inference,
        )
    )


def own_model(model: OwnModel, X: np.ndarray) -> DeepGP:
    """The user's model for standardised X, checked against the columns of the table."""
    made = model if isinstance(model, DeepGP) else model(X)
    if not isinstance(made, DeepGP):
        raise InputError(f"model= must be a DeepGP, or a function of the inputs that makes one, not {made!r:.100}")
    try:
        made.layers[0].project(made.prepare().layers[0], jnp.asarray(X[:2], float))
    except (TypeError, ValueError) as error:
        raise InputError(f"model= does not take rows of {X.shape[1]} inputs: {error}") from error
    return made
