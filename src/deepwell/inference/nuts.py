"""The No-U-Turn Sampler (Hoffman, Gelman 2014) through blackjax: a gold standard for small problems.

It samples v, the noise of the hidden layers at every training row, and whatever of theta is free, on all rows. Since
the hidden noise is sampled rather than averaged over, its target is the posterior itself,

    p(v, theta, noise | y) = p(theta) N(v; 0, I) N(noise; 0, I) prod_i p(y_i | f_L(x_i, v, noise_i)) / p(y),

whose marginal in (v, theta) has no bound in it (the Hybrid Monte Carlo of Hensman et al. 2015, at any depth).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference.chains import Samples, no_samples
from deepwell.inference.config import Config, Rates
from deepwell.inference.deep_gp_posteriors import shared_theta
from deepwell.inference.full_bayes import own_theta
from deepwell.inference.keys import iteration_key
from deepwell.inference.method import Method, NumericalIssues, Phase, Traits, samples_so_far
from deepwell.inference.posterior import Posterior
from deepwell.inference.problem import Problem, deep_gp_problem
from deepwell.model.deep_gp import log_prior_outputs, propagate, row_log_density
from deepwell.model.priors import log_prior
from deepwell.numerics.packing import Flat, Packing
from deepwell.numerics.promotion import usual_promotion

CHUNK = 25


class Collecting(NamedTuple):
    """Where the chains are, how they were tuned, the samples so far, and how many transitions diverged."""

    chains: Any
    step_size: Float[Array, " c"]
    inverse_mass: Float[Array, "c k"]
    samples: Samples
    diverged: Int[Array, " c"]


def log_density(config: Config, problem: Problem, rows: Rows) -> Any:
    """vector -> (log p(y, v, theta, noise), mean log-likelihood), not divided by N."""
    (X, y), weight = minibatch(jax.random.key(0), (rows.X, rows.y), rows.num_data, None)
    positions = Packing(_position(problem, rows))

    def density(vector: Flat) -> tuple[Array, Array]:
        theta, v, noise = positions.unpack(vector)
        model = eqx.combine(theta, problem.constants)
        prepared = model.prepare()
        last = propagate(model, prepared, v, model.layers[0].project(prepared.layers[0], X), noise)
        fit = jnp.sum(weight * row_log_density(model, last, y, config.objective))
        is_free = bool(jax.tree.leaves(problem.theta))
        prior = log_prior(model, problem.initial, config.priors) if is_free and config.priors else 0.0
        noise_prior = log_prior_outputs(noise) if noise else 0.0
        return fit + log_prior_outputs(v) + noise_prior + prior, fit / jnp.sum(weight)

    return density


def _position(problem: Problem, rows: Rows) -> tuple[Any, Any, Any]:
    model = problem.initial
    noise = tuple(jnp.zeros((len(rows.X), layer.width), rows.X.dtype) for layer in model.layers[:-1])
    return problem.theta, jax.tree.map(lambda v: v[0], problem.outputs), noise


def start(config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows) -> Float[Array, "c k"]:
    """All chains near the start, a little apart."""
    vector = Packing.pack(_position(problem, rows))
    return vector + 0.1 * jax.random.normal(key, (config.num_chains, vector.size), vector.dtype)


def warm_up(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    positions: Float[Array, "c k"],
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[Collecting, Array]:
    """Tune the step size and a diagonal mass matrix by Stan's windows, all iterations at once."""
    import blackjax

    density = log_density(config, problem, rows)
    adaptation = blackjax.window_adaptation(blackjax.nuts, lambda x: density(x)[0])

    def one(key: PRNGKeyArray, position: Flat) -> tuple[Any, Any]:
        (state, parameters), _ = usual_promotion(adaptation.run)(key, position, num_steps=config.burn_in)
        return state, parameters

    chains, tuned = jax.vmap(one)(jax.random.split(key, config.num_chains), positions)
    fit = jnp.mean(jax.vmap(lambda x: density(x)[1])(chains.position))
    kept = _unknowns(problem, rows)
    return Collecting(
        chains,
        tuned["step_size"],
        tuned["inverse_mass_matrix"],
        no_samples(config, kept, rows.X.dtype),
        jnp.zeros((config.num_chains,), jnp.int32),
    ), fit


def _unknowns(problem: Problem, rows: Rows) -> int:
    """How much of a position is theta and v; the noise of training rows is not kept."""
    theta, v, _ = _position(problem, rows)
    return Packing((theta, v)).size


def draw_samples(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: Collecting,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[Collecting, Array]:
    """Transitions ``first`` up to ``last``; every ``spacing``-th is kept."""
    import blackjax

    density = log_density(config, problem, rows)
    kernel = usual_promotion(blackjax.nuts.build_kernel())
    kept = state.samples.shape[-1]

    def transition(key: PRNGKeyArray, chain: Any, step_size: Array, inverse_mass: Array) -> tuple[Any, Array]:
        chain, info = kernel(key, chain, lambda x: density(x)[0], step_size, inverse_mass)
        return chain, info.is_divergent.astype(jnp.int32)

    def body(i: Array, state: Collecting) -> Collecting:
        keys = jax.random.split(iteration_key(key, i), config.num_chains)
        chains, diverged = jax.vmap(transition)(keys, state.chains, state.step_size, state.inverse_mass)
        samples = state.samples.at[:, i // config.spacing].set(chains.position[:, :kept])
        return state._replace(chains=chains, samples=samples, diverged=state.diverged + diverged)

    state = lax.fori_loop(first, last, body, state)
    return state, jnp.mean(jax.vmap(lambda x: density(x)[1])(state.chains.position))


def finish(config: Config, key: PRNGKeyArray, problem: Problem, state: Collecting) -> tuple[Posterior, NumericalIssues]:
    """Samples of v, each with its theta unless all of theta was fixed; divergences count as refused moves."""
    posterior: Posterior
    if jax.tree.leaves(problem.theta):
        posterior, retries = own_theta(key, problem, state.samples)
    else:
        posterior = shared_theta(key, problem.initial, state.samples)
        retries = jnp.max(problem.initial.prepare().retries)
    return posterior, NumericalIssues(
        jnp.sum(state.diverged), jnp.zeros((), jnp.int32), retries, jnp.zeros((0,), jnp.int32)
    )


def phases(config: Config) -> tuple[Phase[Any], ...]:
    """Warm-up in one go, then sampling."""
    return (
        Phase("warm-up", config.burn_in, warm_up, chunk=config.burn_in),
        Phase("sampling", config.num_samples * config.spacing, draw_samples, usable=samples_so_far, chunk=CHUNK),
    )


NUTS = Method(
    "nuts",
    start,
    phases,
    finish,
    deep_gp_problem,
    Traits(
        samples_theta=True,
        takes_minibatches=False,
        defaults={"burn_in": 1_000, "num_samples": 500, "spacing": 1},
        refused_move="transitions diverged",
        requires="blackjax",
    ),
)
