"""The paper's method: Moving Window MCEM moves theta while SGHMC moves v, then samples of v at fixed theta.

With a window of one state it is the naive method, in which theta follows the newest sample only.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference import dsvi, mcem, sghmc
from deepwell.inference.chains import Samples, Tuned, at_rest, collect, marked, move_all, no_samples, tuned_sampler
from deepwell.inference.method import Method, Phase, Troubles, sampling_phase
from deepwell.inference.posteriors import SharedTheta, shared_theta
from deepwell.inference.problem import Config, Flat, Problem, adam, density_of_v, most_retries, target
from deepwell.model.deep_gp import Batch, DeepGP
from deepwell.model.layers import Projection
from deepwell.model.linalg import InverseFactor

CACHED_PROJECTIONS = 2**27
"""Numbers of the first layer's projections of all training rows that may be kept."""


def start(config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows) -> Any:
    """The chains at their start and the window empty; or, with a warm start, q(v) before learning."""
    if config.dsvi_start:
        return dsvi.start(config, key, problem, rows)
    theta, _ = ravel_pytree(problem.theta)
    return _empty_window(config, problem, rows, theta, problem.first_positions(config.num_chains))


def after_warm_start(config: Config, problem: Problem, rows: Rows, state: dsvi.State) -> mcem.State:
    """theta where dsvi left it, the chains at the mean of q(v)."""
    theta, belief = dsvi.unknowns(problem, state.unknowns)
    v, _ = ravel_pytree(tuple(q.mean for q in belief))
    begun = _empty_window(config, problem, rows, ravel_pytree(theta)[0], jnp.tile(v, (config.num_chains, 1)))
    return begun._replace(refused=state.refused, noted=state.jitter_grew)


def _empty_window(
    config: Config, problem: Problem, rows: Rows, theta: Flat, positions: Float[Array, "c k"]
) -> mcem.State:
    aim = target(config, problem, rows)
    return mcem.init(aim, theta, at_rest(positions), positions, adam(config), config.window_size)


def burn_in(
    config: Config,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: mcem.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[mcem.State, Float[Array, ""]]:
    """Iterations ``first`` up to ``last``, each with the key of its number, and their mean log-likelihood."""
    aim, optimiser = target(config, problem, rows), adam(config)

    def body(i: Array, carry: tuple[mcem.State, Array]) -> tuple[mcem.State, Array]:
        state, total = carry
        sampler = tuned_sampler(config, rows.num_data, i)
        state, fit = mcem.step(jax.random.fold_in(key, i), state, aim, sampler, optimiser)
        return state, total + fit

    state = state._replace(chains=marked(state.chains))
    state, total = lax.fori_loop(first, last, body, (state, jnp.zeros((), rows.X.dtype)))
    return state, total / (last - first)


class Sampling(NamedTuple):
    """theta, the preconditioners and the troubles as burn-in left them; the chains; the samples so far."""

    theta: Flat
    moments: sghmc.Moments
    refused_updates: Int[Array, ""]
    jitter_grew: Int[Array, " layers"]
    chains: sghmc.Chain
    samples: Samples


class Frozen(NamedTuple):
    """What theta alone decides: the model, its factors, and the rows as the first layer sees them (when they are
    small enough to keep)."""

    model: DeepGP
    factors: tuple[InverseFactor, ...]
    projected: Projection | None


def begin_sampling(config: Config, problem: Problem, rows: Rows, state: mcem.State) -> Sampling:
    """Freeze theta and the preconditioners."""
    tuned: Tuned = state.chains
    samples = no_samples(config, tuned.chain.position.shape[-1], rows.X.dtype)
    return Sampling(state.theta, tuned.moments, state.refused, state.noted, tuned.chain, samples)


def freeze(config: Config, problem: Problem, rows: Rows, state: Sampling) -> Frozen:
    """Factor K_ZZ and project the training inputs on the first layer, once."""
    model = problem.model(state.theta)
    factors = model.factors()
    keep = rows.X.shape[0] * model.layers[0].num_inducing <= CACHED_PROJECTIONS
    return Frozen(model, factors, model.layers[0].project(factors[0], rows.X) if keep else None)


def draw_samples(
    config: Config,
    key: PRNGKeyArray,
    frozen: Frozen,
    rows: Rows,
    state: Sampling,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[Sampling, Float[Array, ""]]:
    """Burn-in without adapting, at fixed theta: iterations ``first`` up to ``last``."""

    def draw_batch(key: PRNGKeyArray) -> Batch:
        inputs = rows.X if frozen.projected is None else frozen.projected
        (inputs, y), weight = minibatch(key, (inputs, rows.y), rows.num_data, config.batch_size)
        if frozen.projected is None:
            inputs = frozen.model.layers[0].project(frozen.factors[0], inputs)
        return Batch(inputs, y, weight)

    def iterate(i: Array, chains: sghmc.Chain) -> tuple[sghmc.Chain, Array]:
        batch_key, step_key = jax.random.split(jax.random.fold_in(key, i))
        density = density_of_v(config, frozen.model, frozen.factors, draw_batch(batch_key), rows.num_data)
        return move_all(config, step_key, chains, state.moments, density, rows.num_data)

    chains, samples, fit = collect(config, state.chains, state.samples, first, last, iterate)
    return state._replace(chains=chains, samples=samples), fit


def finish(config: Config, key: PRNGKeyArray, problem: Problem, state: Sampling) -> tuple[SharedTheta, Troubles]:
    """theta, and the vectors of each chain and draw as inducing outputs of the layers."""
    posterior = shared_theta(key, problem.model(state.theta), state.samples)
    retries = most_retries(posterior.model.factors())
    return posterior, Troubles(jnp.sum(state.chains.refused), state.refused_updates, retries, state.jitter_grew)


def warm_start_phases(config: Config) -> tuple[Phase, ...]:
    """A short dsvi run before burn-in, if asked for."""
    return (Phase("warm start", config.dsvi_start, climb),) if config.dsvi_start else ()


def climb(config: Config, *arguments: Any) -> tuple[dsvi.State, Float[Array, ""]]:
    """dsvi on its own bound, whatever the sampler's objective."""
    return dsvi.optimise(config._replace(objective="expected"), *arguments)


def phases(config: Config) -> tuple[Phase, ...]:
    """Perhaps a warm start, burn-in, sampling."""
    enter = after_warm_start if config.dsvi_start else None
    return (
        *warm_start_phases(config),
        Phase("burn-in", config.burn_in, burn_in, enter),
        sampling_phase(config, draw_samples, begin_sampling, freeze),
    )


METHOD = Method(start, phases, finish)
