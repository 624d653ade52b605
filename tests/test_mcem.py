"""Moving Window MCEM finds the maximum of the evidence, whatever the model and the sampler."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import CONFIG
from scipy import optimize, stats

from deepwell.assess.small_problems import features_and_variance, line_data, problem_of, rows_of, shallow
from deepwell.inference import mcem, sghmc
from deepwell.inference.optimiser import adam
from deepwell.inference.problem import log_joint

CHAINS = 16


def nothing(*_):
    """To prepare, or to draw."""


def frozen_sampler(dynamics, temperature):
    """SGHMC with the preconditioner of unit mass, never adapted."""

    def one(keys, chain, density):
        gradient = jax.grad(lambda v: -density(keys[0], v)[0])(chain.position)
        fixed = sghmc.init_moments(chain.position)
        return sghmc.step(keys[1], chain, fixed, gradient, dynamics, jnp.asarray(temperature, float))

    def step(key, chains, density):
        keys = jax.random.split(key, (CHAINS, 2))
        return jax.vmap(lambda k, c: one(k, c, density))(keys, chains), jnp.zeros(())

    return mcem.Sampler(step, lambda chains: chains.position)


def learn(joint, sampler, theta, chains, steps, rate):
    optimiser = adam(rate)
    state = mcem.init(joint, theta, chains, sampler.position(chains), optimiser, 300)

    def body(state, i):
        state, _ = mcem.step(jax.random.fold_in(jax.random.key(0), i), state, joint, sampler, optimiser)
        return state, state.theta

    return np.asarray(jax.jit(lambda s: jax.lax.scan(body, s, jnp.arange(steps)))(state)[1])


def evidence_maximum(model, X, y, objective):
    """Noise variance that maximises the FITC evidence, or the collapsed bound, at depth 1."""
    features, variance = features_and_variance(model, X)

    def negative(log_noise):
        noise = np.exp(log_noise)
        extra = variance if objective == "predictive" else 0.0
        covariance = features @ features.T + np.diag(np.zeros(len(X)) + extra + noise)
        trace = 0.0 if objective == "predictive" else 0.5 * np.sum(variance) / noise
        return trace - stats.multivariate_normal(np.zeros(len(X)), covariance).logpdf(y[:, 0])

    return optimize.minimize_scalar(negative, bounds=(-8, 3), method="bounded").x


@pytest.mark.parametrize("objective", ["predictive", "expected"])
def test_noise_variance_reaches_the_maximum_of_the_evidence(objective):
    with jax.enable_x64(True):
        X, y = line_data(60, noise=0.3)
        model = shallow(np.linspace(-1.5, 1.5, 6)[:, None], lengthscale=0.6, noise=2.0, jitter=1e-6)
        problem = problem_of(model, ["layers.*"])
        joint = log_joint(CONFIG._replace(objective=objective), problem, rows_of(X, y))
        theta, _ = ravel_pytree(problem.theta)
        sampler = frozen_sampler(sghmc.Dynamics(0.3, 0.3), 1 / 60)
        chains = jax.vmap(sghmc.init)(jnp.zeros((CHAINS, 6)))
        path = learn(joint, sampler, theta, chains, 6000, 0.01)
        best = evidence_maximum(model, X, y, objective)
    assert abs(np.log(2.0) - best) > 0.5  # it had a way to go
    assert np.mean(path[3000:]) == pytest.approx(best, abs=0.05)


def test_any_log_joint_and_any_sampler_will_do():
    """y_i ~ N(v_i, 1), v_i ~ N(theta, 1), sampled exactly: the evidence is largest at theta = mean(y)."""
    y = jnp.asarray(np.random.default_rng(0).normal(2.0, 1.4, 50))

    def density(theta, prepared, batch):
        return lambda key, v: (-0.5 * jnp.sum((y - v) ** 2 + (v - theta) ** 2) / 50, None)

    def exact(key, state, density):
        noise = jnp.sqrt(0.5) * jax.random.normal(key, (1, 50), y.dtype)
        theta = jax.grad(lambda v: density(key, v)[0])(jnp.zeros(50)) * 50 - y  # d/dv at 0 is (y + theta) / 50
        return (y + theta) / 2 + noise, None

    sampler = mcem.Sampler(exact, lambda state: state)
    path = learn(mcem.LogJoint(nothing, nothing, density), sampler, jnp.asarray(-3.0), jnp.zeros((1, 50)), 4000, 0.02)
    assert np.mean(path[3000:]) == pytest.approx(float(jnp.mean(y)), abs=0.05)


def test_an_update_that_is_not_finite_is_not_made():
    def density(theta, prepared, batch):
        return lambda key, v: (jnp.log(theta) * jnp.sum(v), None)

    sampler = mcem.Sampler(lambda key, state, density: (state, None), lambda state: state)
    optimiser = adam(0.1)
    joint = mcem.LogJoint(nothing, nothing, density)
    state = mcem.init(joint, jnp.asarray(0.0), jnp.ones((1, 2)), jnp.ones((1, 2)), optimiser, 3)
    state, _ = mcem.step(jax.random.key(0), state, joint, sampler, optimiser)
    assert float(state.theta) == 0.0
    assert state.refused == 1
