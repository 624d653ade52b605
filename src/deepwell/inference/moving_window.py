"""The paper's method: Moving Window MCEM moves theta while SGHMC moves v, then samples of v at fixed theta.

With a window of one state it is the naive method, in which theta follows the newest sample only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from deepwell.data.rows import Rows, minibatch, run_of_rows
from deepwell.inference import dsvi, mcem, sghmc
from deepwell.inference import window as windows
from deepwell.inference.chains import (
    Anchor,
    Samples,
    Tuned,
    at_rest,
    burn_in_dynamics,
    collect,
    marked,
    move_all,
    no_samples,
    sampling_dynamics,
    tuned_sampler,
)
from deepwell.inference.config import Config, Rates
from deepwell.inference.deep_gp_posteriors import SharedTheta, shared_theta
from deepwell.inference.keys import anchor_key, iteration_key
from deepwell.inference.method import Method, NumericalIssues, Phase, Traits, sampling_phase
from deepwell.inference.optimiser import adam, adam_at
from deepwell.inference.problem import Problem, deep_gp_problem, density_of_v, log_joint
from deepwell.model.deep_gp import Batch, DeepGP
from deepwell.model.layers import Prepared, Projection
from deepwell.numerics.packing import Flat, Packing

CACHED_PROJECTIONS = 2**27
"""Numbers of the first layer's projections of all training rows that may be kept."""
ANCHOR_DRAWS, ANCHOR_GRADIENTS = 16, 8_000
"""Draws of the hidden noise behind the gradient of a control variate, and minibatches behind it, at most."""


def start(config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows) -> mcem.State | dsvi.State:
    """The chains at their start and the window empty; or, with a warm start, q(v) before learning."""
    if config.dsvi_start:
        return dsvi.start(config, key, problem, rows)
    return _empty_window(config, problem, rows, Packing.pack(problem.theta), problem.first_positions(config.num_chains))


def after_warm_start(config: Config, problem: Problem, rows: Rows, state: dsvi.State) -> mcem.State:
    """theta where dsvi left it, the chains at the mean of q(v)."""
    theta, belief = dsvi.unknowns(problem, state.unknowns)
    v = Packing.pack(tuple(q.mean for q in belief))
    begun = _empty_window(config, problem, rows, Packing.pack(theta), jnp.tile(v, (config.num_chains, 1)))
    return begun._replace(refused=state.refused, noted=state.jitter_grew)


def _empty_window(
    config: Config, problem: Problem, rows: Rows, theta: Flat, positions: Float[Array, "c v"]
) -> mcem.State:
    density = log_joint(config, problem, rows)
    return mcem.init(density, theta, at_rest(positions), positions, adam(), config.window_size)


def burn_in(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: mcem.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[mcem.State, Float[Array, ""]]:
    """Iterations ``first`` up to ``last``, each with the key of its number, and their mean log-likelihood."""
    density = log_joint(config, problem, rows)

    def body(i: Array, carry: tuple[mcem.State, Array]) -> tuple[mcem.State, Array]:
        state, total = carry
        sampler = tuned_sampler(config, burn_in_dynamics(config, rates, i), rows.num_data, i)
        state, fit = mcem.step(iteration_key(key, i), state, density, sampler, adam_at(config, rates, i))
        return state, total + fit

    state = state._replace(chains=marked(state.chains))
    state, total = lax.fori_loop(first, last, body, (state, jnp.zeros((), rows.X.dtype)))
    return state, total / (last - first)


class Collecting(NamedTuple):
    """theta, the preconditioners and the refused updates as burn-in left them; the chains; the samples so far."""

    theta: Flat
    moments: sghmc.GradientMoments
    refused_updates: Int[Array, ""]
    jitter_grew: Int[Array, " layers"]
    chains: sghmc.Chain
    samples: Samples
    anchors: Float[Array, "c k"] | None  # where the control variates are


class Frozen(NamedTuple):
    """What theta alone decides: the model, what it prepares, and the rows as the first layer sees them (when they are
    small enough to keep); and the control variates, if there are any."""

    model: DeepGP
    prepared: Prepared
    projected: Projection | None
    anchors: Anchor | None = None


def begin_sampling(config: Config, problem: Problem, rows: Rows, state: mcem.State) -> Collecting:
    """Freeze theta and the preconditioners."""
    tuned: Tuned = state.chains
    samples = no_samples(config, tuned.chain.position.shape[-1], rows.X.dtype)
    anchors = windows.mean(state.window) if config.control_variates else None
    return Collecting(state.theta, tuned.moments, state.refused, state.noted, tuned.chain, samples, anchors)


def freeze(config: Config, key: PRNGKeyArray, problem: Problem, rows: Rows, state: Collecting) -> Frozen:
    """Factor K_ZZ, project the training inputs on the first layer and follow the control variates' gradients, once."""
    model = problem.model(state.theta)
    prepared, first = model.prepare(), model.layers[0]
    keep = first.caches_projections and rows.X.shape[0] * first.num_features <= CACHED_PROJECTIONS
    frozen = Frozen(model, prepared, first.project(prepared.layers[0], rows.X) if keep else None)
    if state.anchors is None:
        return frozen
    keys = jax.random.split(anchor_key(key), len(state.anchors))
    gradients = jax.vmap(lambda k, v: _gradient_over_all_rows(config, k, frozen, rows, v))(keys, state.anchors)
    return frozen._replace(anchors=Anchor(state.anchors, gradients))


def _gradient_over_all_rows(config: Config, key: PRNGKeyArray, frozen: Frozen, rows: Rows, v: Flat) -> Flat:
    """grad U(v) / N, block by block, the mean over several draws of the hidden noise, fewer where blocks are many."""
    size, num_data = config.batch_size or rows.X.shape[0], rows.num_data
    blocks = (num_data + size - 1) // size
    affordable = max(1, ANCHOR_GRADIENTS * size // rows.X.shape[0])
    draws = 1 if frozen.model.depth == 1 else min(ANCHOR_DRAWS, affordable)

    def add(i: Array, total: Flat) -> Flat:
        batch = _batch(frozen, rows, lambda arrays: run_of_rows(arrays, num_data, (i % blocks) * size, size))
        density = density_of_v(config, frozen.model, frozen.prepared, batch, num_data)
        share = jnp.sum(batch.weight) / (draws * num_data.astype(v.dtype))
        return total - share * jax.grad(lambda v: density(iteration_key(key, i), v)[0])(v)

    return lax.fori_loop(0, draws * blocks, add, jnp.zeros_like(v))


def _batch(frozen: Frozen, rows: Rows, cut: Callable[[PyTree], tuple[Any, Array]]) -> Batch:
    """The rows that ``cut`` takes of arrays of all rows, as the first layer sees them."""
    if frozen.projected is not None:
        (first, y), weight = cut((frozen.projected, rows.y))
    else:
        (X, y), weight = cut((rows.X, rows.y))
        first = frozen.model.layers[0].project(frozen.prepared.layers[0], X)
    return Batch(first, y, weight)


def draw_samples(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    frozen: Frozen,
    rows: Rows,
    state: Collecting,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[Collecting, Float[Array, ""]]:
    """Burn-in without adapting, at fixed theta: iterations ``first`` up to ``last``."""

    def draw_batch(key: PRNGKeyArray) -> Batch:
        return _batch(frozen, rows, lambda arrays: minibatch(key, arrays, rows.num_data, config.batch_size))

    def iterate(i: Array, chains: sghmc.Chain) -> tuple[sghmc.Chain, Array]:
        batch_key, step_key = jax.random.split(iteration_key(key, i))
        density = density_of_v(config, frozen.model, frozen.prepared, draw_batch(batch_key), rows.num_data)
        dynamics = sampling_dynamics(config, rates, i)
        return move_all(config, dynamics, step_key, chains, state.moments, density, rows.num_data, frozen.anchors)

    chains, samples, fit = collect(config, state.chains, state.samples, first, last, iterate)
    return state._replace(chains=chains, samples=samples), fit


def finish(
    config: Config, key: PRNGKeyArray, problem: Problem, state: Collecting
) -> tuple[SharedTheta, NumericalIssues]:
    """theta, and the vectors of each chain and draw as inducing outputs of the layers."""
    posterior = shared_theta(key, problem.model(state.theta), state.samples)
    retries = jnp.max(posterior.model.prepare().retries)
    return posterior, NumericalIssues(jnp.sum(state.chains.refused), state.refused_updates, retries, state.jitter_grew)


def warm_start_phases(config: Config) -> tuple[Phase[dsvi.State], ...]:
    """A short dsvi run before burn-in, if asked for."""
    return (Phase("warm start", config.dsvi_start, climb),) if config.dsvi_start else ()


def climb(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: dsvi.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[dsvi.State, Float[Array, ""]]:
    """dsvi on its own bound, whatever the sampler's objective."""
    return dsvi.optimise(config._replace(objective="expected"), rates, key, problem, rows, state, first, last)


def phases(config: Config) -> tuple[Phase[Any], ...]:
    """Perhaps a warm start, burn-in, sampling."""
    enter = after_warm_start if config.dsvi_start else None
    return (
        *warm_start_phases(config),
        Phase("burn-in", config.burn_in, burn_in, enter),
        sampling_phase(config, draw_samples, begin_sampling, freeze),
    )


SGHMC = Method("sghmc", start, phases, finish, deep_gp_problem, Traits(shares_theta=True))
NAIVE = Method(
    "sghmc-naive", start, phases, finish, deep_gp_problem, Traits(shares_theta=True, imposed={"window_size": 1})
)
