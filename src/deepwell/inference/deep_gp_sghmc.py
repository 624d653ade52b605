"""SGHMC for deep GPs: burn-in by Moving Window MCEM, then samples of v at fixed theta."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from deepwell.data.rows import Rows, minibatch
from deepwell.inference import mcem, sghmc
from deepwell.inference.compiling import quick_jit
from deepwell.model.deep_gp import Batch, DeepGP, Objective, Outputs, log_likelihood, log_prior_outputs
from deepwell.model.layers import Projection
from deepwell.model.linalg import InverseFactor
from deepwell.model.priors import Priors, log_prior

CHUNK = 250
CACHED_PROJECTIONS = 2**28
"""Numbers of the first layer's projections of all training rows that may be kept while sampling."""

Flat = Float[Array, " k"]
"""A pytree ravelled into one vector: one fused update instead of one a leaf compiles much faster."""

Progress = Callable[[str, int, int, float], None]
"""(phase, iterations done, iterations in all, mean training log-likelihood of the last chunk)."""


class Config(NamedTuple):
    """Everything that shapes the compiled programs; hashable, so equal settings compile once."""

    objective: Objective
    inner_samples: int
    batch_size: int | None  # None: all rows
    dynamics: sghmc.Dynamics
    shortest_window: int  # floor under the window of the preconditioner; 0: as published
    burn_in: int
    window_size: int
    learning_rate: float
    final_learning_rate: float
    priors: Priors | None
    num_chains: int
    num_samples: int  # of each chain
    spacing: int


class Problem(NamedTuple):
    """A model in two trees: where theta starts, and the constants. Inference moves theta as one vector."""

    theta: DeepGP
    constants: DeepGP

    @property
    def initial(self) -> DeepGP:
        return eqx.combine(self.theta, self.constants)

    def model(self, theta: Flat) -> DeepGP:
        _, unravel = ravel_pytree(self.theta)
        return eqx.combine(unravel(theta), self.constants)


class Tuned(NamedTuple):
    """A chain in burn-in: its state and the moments that tune it."""

    chain: sghmc.Chain
    moments: sghmc.Moments


class Result(NamedTuple):
    """theta at the end of burn-in, samples of v with axes (chain, draw, ...), and the troubles met."""

    model: DeepGP
    samples: Outputs
    trace: list[tuple[int, float]]
    refused_moves: int
    refused_updates: int
    jitter_retries: int


def optimiser(config: Config) -> Any:
    """Adam; the rate is constant for the first half of burn-in, then falls geometrically to its final value."""
    import optax

    half = max(config.burn_in // 2, 1)
    decay = config.final_learning_rate / config.learning_rate
    schedule = optax.exponential_decay(
        config.learning_rate, half, decay, transition_begin=half, end_value=config.final_learning_rate
    )
    return optax.adam(config.learning_rate if decay == 1.0 else schedule)


def target(config: Config, problem: Problem, rows: Rows) -> mcem.Target:
    """log p(y, v | theta) / N on a minibatch; the watched value is the mean log-likelihood of its rows."""

    def prepare(theta: Flat) -> tuple[InverseFactor, ...]:
        return problem.model(theta).factors()

    def density(key: PRNGKeyArray, theta: Flat, factors: tuple[InverseFactor, ...]) -> mcem.Density:
        model = problem.model(theta)
        (X, y), weight = minibatch(key, (rows.X, rows.y), rows.num_data, config.batch_size)
        batch = Batch(model.layers[0].project(factors[0], X), y, weight)
        prior = 0.0 if config.priors is None else log_prior(model, problem.initial, config.priors)
        return _density(config, model, factors, batch, rows.num_data, prior)

    return mcem.Target(prepare, density)


def _density(
    config: Config,
    model: DeepGP,
    factors: tuple[InverseFactor, ...],
    batch: Batch,
    num_data: Int[Array, ""],
    prior: Array | float,
) -> mcem.Density:
    _, unravel = ravel_pytree(model.zero_outputs())

    def density(key: PRNGKeyArray, flat: Flat) -> tuple[Array, Array]:
        v = unravel(flat)
        fit = log_likelihood(key, model, factors, v, batch, config.objective, config.inner_samples)
        return fit + (log_prior_outputs(v) + prior) / num_data.astype(fit.dtype), fit

    return density


def _potential_gradient(key: PRNGKeyArray, v: Flat, density: mcem.Density) -> tuple[Flat, Array]:
    """Gradient of U/N = -log p(y, v)/N, and the watched mean log-likelihood."""

    def potential(v: Flat) -> tuple[Array, Array]:
        value, watched = density(key, v)
        return -value, watched

    return jax.grad(potential, has_aux=True)(v)


def tuned_sampler(config: Config, num_data: Int[Array, ""], iteration: Int[Array, ""]) -> mcem.Sampler:
    """SGHMC on all chains at once, each adapting its own preconditioner.

    The floor under its window grows with the iteration, so that the start of the moments is forgotten.
    """
    floor = jnp.minimum(iteration, config.shortest_window).astype(float)

    def one(keys: PRNGKeyArray, tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        noise_key, move_key = keys
        gradient, fit = _potential_gradient(noise_key, tuned.chain.position, density)
        chain = sghmc.step(
            move_key, tuned.chain, tuned.moments, gradient, config.dynamics, 1.0 / num_data.astype(fit.dtype)
        )
        adapted = sghmc.adapt(tuned.moments, gradient, floor)
        return Tuned(chain, sghmc.select(sghmc.all_finite(adapted), adapted, tuned.moments)), fit

    def step(key: PRNGKeyArray, tuned: Tuned, density: mcem.Density) -> tuple[Tuned, Array]:
        keys = jax.random.split(key, (config.num_chains, 2))
        moved, fits = jax.vmap(lambda k, t: one(k, t, density))(keys, tuned)
        return moved, jnp.mean(fits)

    return mcem.Sampler(step, lambda tuned: tuned.chain.position)


@partial(quick_jit, static_argnums=(0,))
def start(config: Config, problem: Problem) -> mcem.State:
    """All chains at v = 0, the window empty."""
    zero, _ = ravel_pytree(problem.initial.zero_outputs())
    zeros = jnp.zeros((config.num_chains, zero.size), zero.dtype)
    chains = Tuned(jax.vmap(sghmc.init)(zeros), jax.vmap(sghmc.init_moments)(zeros))
    theta, _ = ravel_pytree(problem.theta)
    return mcem.init(theta, chains, zeros, optimiser(config), config.window_size)


@partial(quick_jit, static_argnums=(0,))
def burn_in(
    config: Config,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: mcem.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[mcem.State, Float[Array, ""]]:
    """Iterations ``first`` up to ``last`` of Moving Window MCEM, each with the key of its number."""
    aim, adam = target(config, problem, rows), optimiser(config)

    def body(i: Array, carry: tuple[mcem.State, Array]) -> tuple[mcem.State, Array]:
        state, total = carry
        sampler = tuned_sampler(config, rows.num_data, i)
        state, fit = mcem.step(jax.random.fold_in(key, i), state, aim, sampler, adam)
        return state, total + fit

    state, total = lax.fori_loop(first, last, body, (state, jnp.zeros((), rows.X.dtype)))
    return state, total / (last - first)


class Sampling(NamedTuple):
    """What does not change while sampling: theta, its factors, and the rows as the first layer sees them."""

    model: DeepGP
    factors: tuple[InverseFactor, ...]
    projected: Projection | None  # of all rows, when small enough to keep
    moments: sghmc.Moments


@quick_jit
def prepare_sampling(problem: Problem, theta: Flat, rows: Rows, moments: sghmc.Moments) -> Sampling:
    """Factor K_ZZ and project the training inputs on the first layer, once."""
    model = problem.model(theta)
    factors = model.factors()
    keep = rows.X.shape[0] * model.layers[0].num_inducing <= CACHED_PROJECTIONS
    projected = model.layers[0].project(factors[0], rows.X) if keep else None
    return Sampling(model, factors, projected, moments)


@partial(quick_jit, static_argnums=(0,))
def draw_samples(
    config: Config,
    key: PRNGKeyArray,
    fixed: Sampling,
    rows: Rows,
    chains: sghmc.Chain,
    samples: Float[Array, "c s k"],
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[sghmc.Chain, Float[Array, "c s k"], Float[Array, ""]]:
    """Samples ``first`` up to ``last``, every one ``spacing`` steps of each chain after the one before.

    Iterations are numbered on from burn-in, so one key serves both.
    """
    model, layer = fixed.model, fixed.model.layers[0]
    temperature = 1.0 / rows.num_data.astype(rows.X.dtype)

    def one(keys: PRNGKeyArray, chain: sghmc.Chain, moments: sghmc.Moments, density: mcem.Density) -> PyTree:
        noise_key, move_key = keys
        gradient, fit = _potential_gradient(noise_key, chain.position, density)
        return sghmc.step(move_key, chain, moments, gradient, config.dynamics, temperature), fit

    def move(i: Array, carry: tuple[sghmc.Chain, Array]) -> tuple[sghmc.Chain, Array]:
        chains, total = carry
        batch_key, step_key = jax.random.split(jax.random.fold_in(key, config.burn_in + i))
        inputs = rows.X if fixed.projected is None else fixed.projected
        (inputs, y), weight = minibatch(batch_key, (inputs, rows.y), rows.num_data, config.batch_size)
        projection = layer.project(fixed.factors[0], inputs) if fixed.projected is None else inputs
        density = _density(config, model, fixed.factors, Batch(projection, y, weight), rows.num_data, 0.0)
        keys = jax.random.split(step_key, (config.num_chains, 2))
        chains, fits = jax.vmap(lambda k, c, m: one(k, c, m, density))(keys, chains, fixed.moments)
        return chains, total + jnp.mean(fits)

    def body(s: Array, carry: tuple[sghmc.Chain, Array, Array]) -> tuple[sghmc.Chain, Array, Array]:
        chains, samples, total = carry
        chains, total = lax.fori_loop(s * config.spacing, (s + 1) * config.spacing, move, (chains, total))
        return chains, samples.at[:, s].set(chains.position), total

    zero = jnp.zeros((), rows.X.dtype)
    chains, samples, total = lax.fori_loop(first, last, body, (chains, samples, zero))
    return chains, samples, total / ((last - first) * config.spacing)


@quick_jit
def _unravelled(model: DeepGP, samples: Float[Array, "c s k"]) -> Outputs:
    _, unravel = ravel_pytree(model.zero_outputs())
    return jax.vmap(jax.vmap(unravel))(samples)


def run(key: PRNGKeyArray, problem: Problem, rows: Rows, config: Config, progress: Progress) -> Result:
    """Burn in, then sample, in chunks; only the progress report runs between them."""
    total = config.burn_in + config.num_samples * config.spacing
    state = start(config, problem)
    trace = []
    for done in range(0, config.burn_in, CHUNK):
        end = min(done + CHUNK, config.burn_in)
        state, fit = burn_in(config, key, problem, rows, state, jnp.asarray(done), jnp.asarray(end))
        trace.append((end, float(fit)))
        progress("burn-in", end, total, float(fit))

    tuned: Tuned = state.chains
    fixed = prepare_sampling(problem, state.theta, rows, tuned.moments)
    chains = tuned.chain
    samples = jnp.zeros((config.num_chains, config.num_samples, chains.position.shape[-1]), rows.X.dtype)
    each = max(1, CHUNK // config.spacing)
    for done in range(0, config.num_samples, each):
        end = min(done + each, config.num_samples)
        chains, samples, fit = draw_samples(
            config, key, fixed, rows, chains, samples, jnp.asarray(done), jnp.asarray(end)
        )
        iteration = config.burn_in + end * config.spacing
        trace.append((iteration, float(fit)))
        progress("sampling", iteration, total, float(fit))
    return Result(
        model=fixed.model,
        samples=_unravelled(fixed.model, samples),
        trace=trace,
        refused_moves=int(jnp.sum(chains.refused)),
        refused_updates=int(state.refused),
        jitter_retries=max(int(factor.retries) for factor in fixed.factors),
    )
