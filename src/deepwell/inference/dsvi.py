"""Doubly stochastic variational inference: theta and q(v) climb a bound on the evidence by Adam.

    ELBO / N = mean over a minibatch of E_q log p(y_i | f_L) - sum_l KL(q(v_l) || p(v_l)) / N,

hidden layers sampled by reparameterisation (Salimbeni, Deisenroth 2017). With ``objective="predictive"`` the
expectation stands inside the logarithm (Jankowiak, Pleiss, Gardner 2020, "Deep Sigma Point Processes"), and it is no
bound. Decoupled inference is the same with inducing inputs of its own for the variances.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference.config import Config, Rates
from deepwell.inference.deep_gp_posteriors import Variational
from deepwell.inference.keys import iteration_key
from deepwell.inference.method import Method, NumericalIssues, Phase, Traits
from deepwell.inference.optimiser import adam, adam_at
from deepwell.inference.problem import Problem, decoupled_problem, jitter_grew, variational_problem
from deepwell.model.deep_gp import DeepGP, MeanAndVariance, Outputs, mean_log_density
from deepwell.model.gaussian_outputs import Belief, belief_at, prepare_belief, propagate_belief
from deepwell.model.priors import log_prior
from deepwell.numerics.packing import Flat, Packing
from deepwell.numerics.trees import keep_finite


class State(NamedTuple):
    """theta and q(v) as one vector, Adam's moments of it, how many updates were refused as not finite, and in how many
    iterations the jitter of each layer grew."""

    unknowns: Flat
    optimiser: Any
    refused: Int[Array, ""]
    jitter_grew: Int[Array, " layers"]


def unknowns(problem: Problem, vector: Flat) -> tuple[DeepGP, Belief]:
    """The free part of theta and q(v); where inducing inputs are fixed, those of the variance are too."""
    assert problem.belief is not None
    theta, belief = Packing((problem.theta, problem.belief)).unpack(vector)

    def held(layer: Any, q: Any) -> Any:
        if q.variance_inputs is None or layer.inducing_inputs is not None:
            return q
        return eqx.tree_at(lambda x: x.variance_inputs, q, lax.stop_gradient(q.variance_inputs))

    return theta, tuple(held(layer, q) for layer, q in zip(theta.layers, belief, strict=True))


def start(config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows) -> State:
    """Where the problem says, nothing climbed."""
    vector = Packing.pack((problem.theta, problem.belief))
    layers = len(problem.initial.layers)
    return State(vector, adam().init(vector), jnp.zeros((), jnp.int32), jnp.zeros((layers,), jnp.int32))


def elbo(
    config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows, vector: Flat
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Int[Array, " layers"]]]:
    """ELBO / N (plus the log prior of theta / N, if there is one) on a minibatch; its first term, and which jitters
    grew."""
    batch_key, noise_key = jax.random.split(key)
    theta, belief = unknowns(problem, vector)
    model = eqx.combine(theta, problem.constants)
    prepared = prepare_belief(model, belief)
    (X, y), weight = minibatch(batch_key, (rows.X, rows.y), rows.num_data, config.batch_size)
    parts = prepared.for_mean.layers[0], prepared.for_variance.layers[0]
    first = belief_at(model.layers[0], belief[0], *parts, X)

    def last_layer(noise: Outputs) -> MeanAndVariance:
        return propagate_belief(model, belief, prepared, first, noise)

    fit = mean_log_density(noise_key, model, last_layer, y, weight, config.objective, config.inner_samples)
    divergence = jnp.sum(jnp.stack([q.kl() for q in belief]))
    begun = (problem.initial, problem.belief)
    prior = 0.0 if config.priors is None else log_prior((model, belief), begun, config.priors)
    grew = jitter_grew(prepared.retries)
    return fit - (divergence - prior) / rows.num_data.astype(fit.dtype), (fit, grew)


def optimise(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[State, Float[Array, ""]]:
    """Steps ``first`` up to ``last`` of Adam, each with the key of its number, and their mean log-likelihood."""

    def body(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, total = carry

        def loss(vector: Flat) -> tuple[Array, tuple[Array, Array]]:
            value, noted = elbo(config, iteration_key(key, i), problem, rows, vector)
            return -value, noted

        gradient, (fit, grew) = jax.grad(loss, has_aux=True)(state.unknowns)
        updates, moved = adam_at(config, rates, i).update(gradient, state.optimiser)
        new, old = (state.unknowns + updates, moved), (state.unknowns, state.optimiser)
        (vector, moved), refused = keep_finite(new, old, gradient)
        return State(vector, moved, state.refused + refused, state.jitter_grew + grew), total + fit

    state, total = lax.fori_loop(first, last, body, (state, jnp.zeros((), rows.X.dtype)))
    return state, total / (last - first)


def finish(config: Config, key: PRNGKeyArray, problem: Problem, state: State) -> tuple[Variational, NumericalIssues]:
    """The model and q(v), with hidden noise for as many functions as samples were asked for."""
    theta, belief = unknowns(problem, state.unknowns)
    model = eqx.combine(theta, problem.constants)
    draws = config.num_chains * config.num_samples
    posterior = Variational(model, belief, model.hidden_noise(key, (1, draws)), 1 if model.depth == 1 else draws)
    retries = jnp.max(prepare_belief(model, belief).retries)
    return posterior, NumericalIssues(jnp.zeros((), jnp.int32), state.refused, retries, state.jitter_grew)


def phases(config: Config) -> tuple[Phase[State], ...]:
    """All iterations are one climb."""
    return (Phase("optimising", config.burn_in, optimise, usable=lambda config, state, done: state),)


STARTS: dict[str, Any] = {"hidden_variance": 1.0, "noise_variance": 0.1}
"""Where kernel variances of hidden layers and the noise start."""
DSVI = Method(
    "dsvi", start, phases, finish, variational_problem, Traits(variational=True, objective="expected", defaults=STARTS)
)
DECOUPLED = Method(
    "dsvi-decoupled",
    start,
    phases,
    finish,
    decoupled_problem,
    Traits(variational=True, objective="expected", defaults=STARTS, inducing_factor=3),
)
"""With three times the inducing points for the mean, 300 where others have 100, as in the paper."""
