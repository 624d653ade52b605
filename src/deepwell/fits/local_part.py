"""Learning the local part of a fitted posterior from its training rows.

Its D + 4 numbers maximise the leave-one-out log density of the mixture over samples at some training rows, the probes.
The posterior has seen the probes too, which would make them look easier than new rows, so each is first taken out of it
(``deepwell.predict.leave_one_out``). Neighbours are sought again between rounds, in the newest metric.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from deepwell.data.resolution import resolution, rounding_variance
from deepwell.inference.optimiser import adam
from deepwell.inference.posterior import Posterior
from deepwell.model.likelihoods.numbers import Normals
from deepwell.model.local import Conditioned, LocalKernel, Sites, Tail
from deepwell.numerics.jit import quick_jit
from deepwell.numerics.promotion import usual_promotion
from deepwell.numerics.quadrature import gaussian_log_density
from deepwell.predict.blocks import marginals
from deepwell.predict.leave_one_out import carried_over, move_without_target
from deepwell.predict.local_part import LocalPart, joined, local_part, nearest_in, sites

NUM_NEIGHBOURS, MOST_PROBES, MOST_SAMPLES = 32, 1_500, 50
ROUNDS, STEPS, BATCH = 3, 40, 400
LEARNING_RATE = 0.05
LENGTHSCALE, LENGTHSCALE_SPREAD = 0.5, 1.0
"""Median of the lengthscales' prior, times the root of their number, and the standard deviation of their logarithms."""
DEGREES = 6.0
"""Median of the prior of the tail's degrees of freedom, whose logarithm has standard deviation one."""
WORST = -20.0
"""A probe's log density counts as no less: one row must not decide the numbers."""


class Probes(NamedTuple):
    """Training rows as if the posterior had not seen their targets, under some of its samples, and their neighbours."""

    y: Float[Array, "b p"]
    marginal: Normals
    row: Sites
    neighbours: Sites
    residuals: Float[Array, "b k s p"]


class Learned(NamedTuple):
    """A local part, and the mean leave-one-out log density of a row with it and without, for standardised y."""

    part: LocalPart
    log_density: float
    log_density_without: float


def learn_local_part(
    posterior: Posterior,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n p"],
    key: PRNGKeyArray,
    num_neighbours: int = NUM_NEIGHBOURS,
) -> Learned:
    """The local part of a posterior of real numbers that was fitted to standardised X and y."""
    marginal = joined(marginals(posterior, X))
    inputs, targets = jnp.asarray(X, float), jnp.asarray(y, float)
    kernel = first_kernel(
        X.shape[1], y.shape[1], borrows=not np.any(marginal.variance), tail=marginal.noise.shape[-1] == 1
    )
    part = local_part(kernel, marginal, inputs, targets, min(num_neighbours, len(X) - 1))
    choose, *keys = jax.random.split(key, ROUNDS + 1)
    numbers = np.sort(np.asarray(jax.random.permutation(choose, len(X))[:MOST_PROBES]))
    probes = left_out(part, targets, marginal, numbers)
    state, gap = optimiser().init(kernel), resolution(y)
    for round_key in keys:
        kernel = dataclasses.replace(kernel, floor=floor_under(gap, _errors(kernel, probes)))
        kernel, state = _learn(kernel, state, probes, round_key)
        part = dataclasses.replace(part, kernel=kernel)
        probes = left_out(part, targets, marginal, numbers)
    with_it, without = (float(jnp.mean(_log_densities(k, probes))) for k in (kernel, switched_off(kernel)))
    return Learned(part, with_it, without)


def first_kernel(num_inputs: int, num_targets: int, borrows: bool, tail: bool) -> LocalKernel:
    """Where learning starts: half of R correlated; b = 1 if there is no R. Noise of many nodes needs no tail."""
    count = num_inputs + num_targets
    log_one = jnp.zeros((num_targets,))
    return LocalKernel(
        log_lengthscales=jnp.full((count,), _log_median_lengthscale(count)),
        logit_share=jnp.zeros((num_targets,)),
        log_amplitude=log_one,
        log_noise=log_one,
        log_borrowed=log_one if borrows else log_one - math.inf,
        floor=jnp.zeros((num_targets,)),
        tail=Tail(log_one + math.log(DEGREES)) if tail else None,
    )


def switched_off(kernel: LocalKernel) -> LocalKernel:
    """w = 0, a = n = 1 and no tail: the model by itself."""
    zeros = jnp.zeros_like(kernel.log_noise)
    return LocalKernel(kernel.log_lengthscales, zeros - math.inf, zeros, zeros, kernel.log_borrowed, zeros)


def floor_under(gap: Float[np.ndarray, " p"], errors: Float[Array, "b p"]) -> Float[Array, " p"]:
    """The variance of rounding y, unless y is predicted better than a rounded number can be: then its grid is exact.

    Rounding alone leaves a median error of a quarter of the gap; half of that is proof enough.
    """
    rounded = np.median(np.abs(np.asarray(errors)), 0) > gap / 8.0
    return jnp.asarray(np.where(rounded, rounding_variance(gap), 0.0), float)


def left_out(part: LocalPart, y: Float[Array, "n p"], marginal: Normals, numbers: np.ndarray) -> Probes:
    """The training rows of these numbers, each taken out of the posterior; none is its own neighbour.

    A row's neighbours are sought by what the model would say of it had it not seen its target.
    """
    thin = slice(None, None, -(-marginal.mean.shape[0] // MOST_SAMPLES))
    probes = jax.tree.map(lambda x: jnp.asarray(x[thin][:, numbers] if x.shape[1] > 1 else x[thin]), marginal)
    inputs = part.rows.features[:, : part.rows.features.shape[1] - y.shape[1]]
    moves, row = _take_out(probes, y[numbers], inputs[numbers])
    neighbours = jnp.asarray(nearest_in(part.kernel, part.rows.features, row.features, part.num_neighbours, numbers))
    residuals = _left_residuals(probes.mean, moves, part.residuals[:, thin], neighbours)
    left = probes._replace(mean=probes.mean + moves)
    return Probes(y[numbers], left, row, jax.tree.map(lambda x: x[neighbours], part.rows), residuals)


@quick_jit
def _take_out(
    probes: Normals, y: Float[Array, "b p"], inputs: Float[Array, "b d"]
) -> tuple[Float[Array, "s b p"], Sites]:
    """How far the samples move when each probe's target is taken out, and the probes' sites after it."""
    own = sites(inputs, probes.mean, probes)
    each_target = jax.vmap(move_without_target, (1, 0, 0), 1)
    moves = jax.vmap(each_target, (1, 0, 0), 1)(probes.mean, y, own.variance + own.noise)
    return moves, sites(inputs, probes.mean + moves, probes)


@quick_jit
def _left_residuals(
    mean: Float[Array, "s b p"], moves: Float[Array, "s b p"], residuals: Float[Array, "n s p"], of: Int[Array, "b k"]
) -> Float[Array, "b k s p"]:
    """The neighbours' residuals after the probe's target is taken out. A residual falls where the mean rises."""

    def one(mean: Array, move: Array, theirs: Array) -> Array:
        return theirs + jax.vmap(carried_over, (1, 1, 2), 2)(move, mean, theirs)

    return jax.vmap(one, (1, 1, 0))(mean, moves, residuals[of])


def log_densities(kernel: LocalKernel, probes: Probes) -> Float[Array, " b"]:
    """log (1/S) sum_s p_s(y | the neighbours) of each probe, joint over targets."""
    marginal = probes.marginal
    mean, conditioned = _conditioned(kernel, probes)
    variance, noise, log_weights = kernel.variances(
        marginal.variance, marginal.noise, marginal.log_weights, conditioned.explained
    )
    of_node = gaussian_log_density(probes.y[..., None], mean[..., None], variance[..., None] + noise) + log_weights
    of_sample = jnp.sum(jax.nn.logsumexp(of_node, -1), -1)
    return jax.nn.logsumexp(of_sample, 0) - math.log(len(of_sample))


def _conditioned(kernel: LocalKernel, probes: Probes) -> tuple[Float[Array, "s b p"], Conditioned]:
    conditioned = jax.vmap(kernel.condition)(probes.row, probes.neighbours)
    mean = jax.vmap(kernel.mean, (1, 0, 0), 1)(probes.marginal.mean, conditioned.weights, probes.residuals)
    return mean, conditioned


_log_densities = quick_jit(log_densities)


@quick_jit
def _errors(kernel: LocalKernel, probes: Probes) -> Float[Array, "b p"]:
    """What the mixture's mean misses y by."""
    return probes.y - jnp.mean(_conditioned(kernel, probes)[0], 0)


def optimiser() -> Any:
    """Adam; a step that is not finite is not made."""
    import optax

    algorithm = optax.apply_if_finite(adam(LEARNING_RATE), max_consecutive_errors=ROUNDS * STEPS)
    return optax.GradientTransformation(algorithm.init, usual_promotion(algorithm.update))


@quick_jit
def _learn(kernel: LocalKernel, state: PyTree, probes: Probes, key: PRNGKeyArray) -> tuple[LocalKernel, PyTree]:
    """``STEPS`` steps of Adam, each on a batch of the probes."""
    count = len(probes.y)

    def loss(kernel: LocalKernel, rows: Int[Array, " b"]) -> Float[Array, ""]:
        density = jnp.mean(jnp.maximum(log_densities(kernel, _those(probes, rows)), WORST))
        return -density - log_prior(kernel) / count

    def step(carry: tuple[LocalKernel, PyTree], key: PRNGKeyArray) -> tuple[tuple[LocalKernel, PyTree], None]:
        kernel, state = carry
        gradient = jax.grad(loss)(kernel, jax.random.permutation(key, count)[:BATCH])
        updates, state = optimiser().update(gradient, state)
        return (jax.tree.map(jnp.add, kernel, updates), state), None

    return jax.lax.scan(step, (kernel, state), jax.random.split(key, STEPS))[0]


def _those(probes: Probes, rows: Int[Array, " b"]) -> Probes:
    marginal = jax.tree.map(lambda x: x[:, rows] if x.shape[1] > 1 else x, probes.marginal)
    rest = jax.tree.map(lambda x: x[rows], (probes.y, probes.row, probes.neighbours, probes.residuals))
    return Probes(rest[0], marginal, *rest[1:])


def _log_median_lengthscale(count: int) -> float:
    return math.log(LENGTHSCALE * math.sqrt(count))


def log_prior(kernel: LocalKernel) -> Float[Array, ""]:
    """Lengthscales, and degrees of freedom if there are any, are log-normal; less the constant."""
    median = _log_median_lengthscale(kernel.log_lengthscales.shape[0])
    lengthscales = jnp.sum(((kernel.log_lengthscales - median) / LENGTHSCALE_SPREAD) ** 2)
    degrees = 0.0 if kernel.tail is None else jnp.sum((kernel.tail.log_degrees - math.log(DEGREES)) ** 2)
    return -0.5 * (lengthscales + degrees)
