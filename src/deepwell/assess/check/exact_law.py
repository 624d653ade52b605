"""The exact law of the chain: at depth 1 SGHMC is a linear recursion, whose moments at any step are known.

With U/N = v'Hv/2 - b'v and z = (v, p), one step is z <- F z + s + noise of covariance Q, so from rest at v = 0

    m <- F m + s,      P <- F P F' + Q.

This is the law of the discretised chain: no tolerance for the step size is needed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from deepwell.assess.small_problems import Quadratic, line_data, problem_of, quadratic, rows_of, shallow
from deepwell.fits.presets import make_settings
from deepwell.inference import sghmc
from deepwell.inference.chains import no_samples
from deepwell.inference.moving_window import Sampling, draw_samples, freeze
from deepwell.model.deep_gp import DeepGP
from deepwell.numerics.jit import quick_jit

CHAINS, STEPS, ROWS, INDUCING = 4096, 150, 40, 8
DYNAMICS = sghmc.Dynamics(step_size=0.05, friction=0.1)
TWIN = 1.1
"""The temperature that the twin assumes is this many times too low."""
FLOOR = 1e-6
"""A p-value below this rejects the law."""


class Law(NamedTuple):
    """Chains whitened by their exact law, which are standard normal if the sampler is right, and by the twin's."""

    whitened: np.ndarray
    twin: np.ndarray

    @property
    def p(self) -> float:
        return p_value(self.whitened)

    @property
    def p_twin(self) -> float:
        return p_value(self.twin)


def law(
    q: Quadratic, inverse_mass: np.ndarray, dynamics: sghmc.Dynamics, temperature: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (v, p) after ``steps`` from rest at v = 0: P <- F P F' + Q."""
    size, eps, alpha = len(q.b), dynamics.step_size, dynamics.friction
    pull = eps**2 * inverse_mass[:, None] * q.H
    momentum = np.hstack([-pull, (1 - alpha) * np.eye(size)])
    F = np.vstack([momentum + np.hstack([np.eye(size), np.zeros((size, size))]), momentum])
    shift = np.tile(eps**2 * inverse_mass * q.b, 2)
    noise = np.tile(np.diag(2 * eps**2 * alpha * inverse_mass * temperature), (2, 2))
    mean, covariance = np.zeros(2 * size), np.zeros((2 * size, 2 * size))
    for _ in range(steps):
        mean, covariance = F @ mean + shift, F @ covariance @ F.T + noise
    return mean, covariance


def whiten(states: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """L^{-1} (z - m) with L L' = P: standard normal if the states have this law."""
    return np.linalg.solve(np.linalg.cholesky(covariance), (states - mean).T).T


def p_value(whitened: np.ndarray) -> float:
    """Smallest p-value of the mean, the overall scale, and (corrected for their number) each coordinate's scale."""
    from scipy import stats

    count, size = whitened.shape
    p_mean = stats.chi2(size).sf(count * np.sum(whitened.mean(0) ** 2))
    total = stats.chi2(count * size).cdf(np.sum(whitened**2))
    each = stats.chi2(count).cdf(np.sum(whitened**2, 0))
    p_total = 2 * min(total, 1 - total)
    p_each = 2 * size * np.min(np.minimum(each, 1 - each))
    return float(min(p_mean, p_total, p_each))


def line_model() -> DeepGP:
    """Depth 1, with evenly spaced inducing inputs."""
    return shallow(np.linspace(-1.5, 1.5, INDUCING)[:, None], lengthscale=0.4, jitter=1e-5)


def uneven_moments(size: int) -> sghmc.Moments:
    """A preconditioner that differs from coordinate to coordinate."""
    square = jnp.asarray(np.random.default_rng(5).uniform(0.3, 3.0, size), float)
    return sghmc.Moments(jnp.ones_like(square), jnp.zeros_like(square), square)


def sample_chains(objective: str, seed: int, chains: int = CHAINS) -> Sampling:
    """The library's own sampling loop on all chains, from rest at v = 0, in two chunks."""
    settings = make_settings(objective=objective, num_chains=chains, num_samples=3, spacing=STEPS // 3)
    config = settings.config(ROWS)._replace(sampling_dynamics=DYNAMICS)
    problem, rows = problem_of(line_model()), rows_of(*line_data(ROWS))
    positions = jnp.zeros((chains, INDUCING))
    state = Sampling(
        ravel_pytree(problem.theta)[0],
        jax.tree.map(lambda x: jnp.broadcast_to(x, positions.shape), uneven_moments(INDUCING)),
        jnp.zeros((), jnp.int32),
        jnp.zeros((1,), jnp.int32),
        jax.vmap(sghmc.init)(positions),
        no_samples(config, INDUCING, positions.dtype),
        None,
    )
    key, advance = jax.random.key(seed), quick_jit(draw_samples, static_argnums=(0,))
    frozen = freeze(config, key, problem, rows, state)
    for ends in ((0, 2), (2, 3)):
        first, last = (jnp.asarray(s * config.spacing) for s in ends)
        state, _ = advance(config, key, frozen, rows, state, first, last)
    return state


def law_of_sampler(objective: str, seed: int = 0, chains: int = CHAINS) -> Law:
    """Chains of one objective against the law they must have, and against the twin's."""
    ends = sample_chains(objective, seed, chains).chains
    states = np.concatenate([ends.position, ends.momentum], axis=1).astype(np.float64)
    q = quadratic(line_model(), *line_data(ROWS), objective)
    inverse_mass = np.asarray(sghmc.inverse_mass(uneven_moments(INDUCING)), np.float64)
    right, wrong = (law(q, inverse_mass, DYNAMICS, 1 / (ROWS * error), STEPS) for error in (1.0, TWIN))
    return Law(whiten(states, *right), whiten(states, *wrong))
