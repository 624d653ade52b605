"""Where a fit starts: from scratch, or from what another method found."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepwell.errors import InputError, require
from deepwell.fits.fitted import FittedModel
from deepwell.fits.presets import plain
from deepwell.fits.settings import Settings
from deepwell.inference.posterior import Networks, OwnTheta, Posterior, SharedTheta, Variational
from deepwell.inference.problem import NetProblem, Problem
from deepwell.inference.registry import VARIATIONAL
from deepwell.model.deep_gp import DeepGP, Outputs, split_parameters
from deepwell.model.gaussian_outputs import FIRST_INNER_VARIANCE, Belief, GaussianOutputs, initial_belief
from deepwell.model.initial import initial_model, variance_inputs
from deepwell.model.layers import Layer
from deepwell.model.likelihoods import Likelihood
from deepwell.model.net import Net, initial_net

SHAPE = ("depth", "width", "num_inducing", "kernel", "hidden_units", "likelihood")


class Found(NamedTuple):
    """What another fit knows of a deep GP: theta, v of each chain, and q(v) or as much of it as samples tell."""

    model: DeepGP
    outputs: Outputs
    belief: Belief


def checked_start(init: Any) -> FittedModel | None:
    """A fitted model, taken out of an estimator if it is in one."""
    found = getattr(init, "model_", init)
    if found is not None and not isinstance(found, FittedModel):
        raise InputError(f"init={init!r} is neither a fitted model nor a fitted estimator")
    return found


def with_shape_of(init: FittedModel, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the shape of the model that is the start; it cannot be had in another."""
    shape = {name: getattr(init.settings, name) for name in SHAPE}
    if settings.get("likelihood") == "classes" and init.classes is not None:
        settings = {**settings, "likelihood": None}
    for name, value in shape.items():
        if settings.get(name) is not None and plain(settings[name]) != value:
            raise InputError(f"{name}={settings[name]!r} cannot be had: init was fitted with {name}={value!r}")
    return {**settings, **shape}


def make_problem(
    rng: np.random.Generator,
    X: np.ndarray,
    y: np.ndarray,
    settings: Settings,
    likelihood: Likelihood,
    init: FittedModel | None,
) -> Problem | NetProblem:
    """The problem that the chosen method solves, for standardised X and y."""
    if settings.inference == "nuts":
        require("blackjax", "inference='nuts'")
    if settings.inference == "bnn":
        return NetProblem(_first_nets(rng, X.shape[1], y.shape[1], settings, likelihood, init))
    decoupled = settings.inference == "dsvi-decoupled"
    if init is None:
        model = initial_model(rng, X, y.shape[1], likelihood, settings.architecture(X.shape[1]))
        outputs, belief = jax.tree.map(lambda v: v[None], model.zero_outputs()), None
    else:
        model, outputs, belief = _found(init)
    try:
        theta, constants = split_parameters(model, settings.fixed)
    except ValueError as error:
        raise InputError(str(error)) from error
    if settings.inference not in VARIATIONAL and not settings.dsvi_start:
        return Problem(theta, constants, outputs)
    if belief is None:
        belief = initial_belief(
            model, variance_inputs(rng, X, model, settings.variance_inducing() if decoupled else None)
        )
    else:
        belief = (_apart if decoupled else _together)(model, belief)
    return Problem(theta, constants, outputs, belief)


def _apart(model: DeepGP, belief: Belief) -> Belief:
    """The same belief, its variances with inducing inputs of their own."""

    def one(layer: Layer, q: GaussianOutputs) -> GaussianOutputs:
        inputs = layer.inducing_inputs if q.variance_inputs is None else q.variance_inputs
        return GaussianOutputs(q.mean, q.scale, inputs)

    return tuple(one(layer, q) for layer, q in zip(model.layers, belief, strict=True))


def _together(model: DeepGP, belief: Belief) -> Belief:
    """The same means; variances that had inducing inputs of their own start afresh."""
    fresh = initial_belief(model, (None,) * model.depth)
    pairs = zip(fresh, belief, strict=True)
    return tuple(q if q.variance_inputs is None else GaussianOutputs(q.mean, new.scale) for new, q in pairs)


def _first_nets(
    rng: np.random.Generator,
    num_inputs: int,
    num_targets: int,
    settings: Settings,
    likelihood: Likelihood,
    init: FittedModel | None,
) -> Net:
    if init is not None:
        if not isinstance(init.posterior, Networks):
            raise InputError(f"bnn cannot start from a model fitted by {init.settings.inference}")
        return jax.vmap(init.posterior.net)(init.posterior.parameters[:, -1])
    keys = jax.random.split(jax.random.key(int(rng.integers(2**32))), settings.num_chains)
    sizes = num_inputs, num_targets, settings.hidden_units, likelihood
    return jax.vmap(lambda key: initial_net(key, *sizes))(keys)


def _found(init: FittedModel) -> Found:
    """theta, v and q(v) of another fit; samples give the moments of q, theta is that of the newest sample."""
    posterior: Posterior = init.posterior
    if isinstance(posterior, Variational):
        return Found(posterior.model, tuple(q.mean[None] for q in posterior.belief), posterior.belief)
    if isinstance(posterior, SharedTheta):
        return Found(posterior.model, _newest(posterior.samples), _moments(posterior.samples))
    if isinstance(posterior, OwnTheta):
        model = posterior.model(posterior.parameters[0, -1])
        newest = jax.tree.map(lambda v: v[:1], _newest(posterior.samples))  # the v that belongs to this theta
        return Found(model, newest, _narrow(newest))
    raise InputError(f"a deep GP cannot start from a model fitted by {init.settings.inference}")


def _newest(samples: Outputs) -> Outputs:
    return jax.tree.map(lambda v: v[:, -1], samples)


def _narrow(newest: Outputs) -> Belief:
    """q(v) close around one v."""
    spread = [jnp.full(v.shape[1:], np.sqrt(FIRST_INNER_VARIANCE), v.dtype) for v in newest]
    return tuple(_diagonal(v[0], s) for v, s in zip(newest, spread, strict=True))


def _moments(samples: Outputs) -> Belief:
    """Mean and standard deviation of the draws of the first chain."""
    smallest = np.sqrt(FIRST_INNER_VARIANCE)
    return tuple(_diagonal(jnp.mean(v[0], 0), jnp.maximum(jnp.std(v[0], 0), smallest)) for v in samples)


def _diagonal(mean: jax.Array, std: jax.Array) -> GaussianOutputs:
    return GaussianOutputs(mean, jax.vmap(jnp.diag)(jnp.log(std.T)))
