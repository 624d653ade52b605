"""DSVI against closed forms: the collapsed bound, the exact GP, the evidence; decoupled against coupled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import CONFIG, rates
from scipy import stats

from deepwell.assess.small_problems import (
    features_and_variance,
    line_data,
    problem_of,
    rows_of,
    shallow,
    two_layers,
)
from deepwell.inference import dsvi
from deepwell.model.gaussian_outputs import GaussianOutputs, belief_at, initial_belief, prepare_belief

ELBO = CONFIG._replace(method="dsvi", objective="expected")


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def variational(model, fixed=("*",), inputs=None):
    belief = initial_belief(model, inputs or (None,) * model.depth)
    return problem_of(model, list(fixed))._replace(belief=belief)


def collapsed_bound(model, X, y):
    """Titsias (2009): log N(y; 0, Q + noise) - tr(K - Q) / (2 noise)."""
    features, variance = features_and_variance(model, X)
    noise = np.exp(float(model.likelihood.log_noise_variance[0]))
    covariance = features @ features.T + noise * np.eye(len(X))
    return stats.multivariate_normal(np.zeros(len(X)), covariance).logpdf(y[:, 0]) - 0.5 * np.sum(variance) / noise


def log_evidence(model, X, y):
    kernel, noise = model.layers[0].kernel, np.exp(float(model.likelihood.log_noise_variance[0]))
    covariance = np.asarray(kernel(jnp.asarray(X), jnp.asarray(X))) + noise * np.eye(len(X))
    return stats.multivariate_normal(np.zeros(len(X)), covariance).logpdf(y[:, 0])


def optimum(model, X, y):
    """The optimal q(v) at depth 1: N(A'y / noise, .) with precision A'A / noise + I."""
    features, _ = features_and_variance(model, X)
    noise = np.exp(float(model.likelihood.log_noise_variance[0]))
    covariance = np.linalg.inv(features.T @ features / noise + np.eye(features.shape[1]))
    chol = np.linalg.cholesky(covariance)
    scale = np.tril(chol, -1) + np.diag(np.log(np.diag(chol)))
    return GaussianOutputs(jnp.asarray(covariance @ features.T @ y / noise), jnp.asarray(scale[None]))


def elbo(problem, belief, X, y, key=0):
    vector, _ = ravel_pytree((problem.theta, belief))
    value, _ = dsvi.elbo(ELBO, jax.random.key(key), problem, rows_of(X, y), vector)
    return len(X) * float(value)


def climb(problem, X, y, steps, config=ELBO):
    state = dsvi.start(config, jax.random.key(0), problem, rows_of(X, y))
    arguments = problem, rows_of(X, y), state, jnp.asarray(0), jnp.asarray(steps)
    state, _ = jax.jit(dsvi.optimise, static_argnums=0)(config, rates(0.02), jax.random.key(1), *arguments)
    return dsvi.unknowns(problem, state.unknowns)


def test_at_the_optimal_q_the_elbo_is_the_collapsed_bound_and_below_the_evidence():
    X, y = line_data(30)
    model = shallow(np.linspace(-1.5, 1.5, 6)[:, None], lengthscale=0.5, jitter=1e-10)
    problem, best = variational(model), optimum(model, X, y)
    assert elbo(problem, (best,), X, y) == pytest.approx(collapsed_bound(model, X, y), abs=1e-6)
    gradient = jax.grad(lambda b: dsvi.elbo(
        ELBO, jax.random.key(0), problem, rows_of(X, y), ravel_pytree((problem.theta, b))[0])[0]
    )((best,))  # fmt: skip
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 0.0, atol=1e-9)
    worse = eqx.tree_at(lambda q: q.mean, best, best.mean + 0.1)
    assert elbo(problem, (worse,), X, y) < collapsed_bound(model, X, y) < log_evidence(model, X, y)


def test_climbing_reaches_the_collapsed_bound():
    X, y = line_data(30)
    model = shallow(np.linspace(-1.5, 1.5, 6)[:, None], lengthscale=0.5, jitter=1e-10)
    problem = variational(model)
    _, found = climb(problem, X, y, 3000)
    reached, best = elbo(problem, found, X, y), collapsed_bound(model, X, y)
    assert elbo(problem, problem.belief, X, y) < best - 10
    assert best - 0.05 < reached <= best + 1e-9


def first_layer(model, q, X):
    """q(f) of a model of depth 1."""
    prepared = prepare_belief(model, (q,))
    return belief_at(model.layers[0], q, prepared.for_mean.layers[0], prepared.for_variance.layers[0], jnp.asarray(X))


def test_with_inducing_inputs_at_the_data_it_is_the_exact_gp():
    X, y = line_data(12)
    model = shallow(X, lengthscale=0.3, noise=0.1, jitter=1e-12)
    best = optimum(model, X, y)
    assert elbo(variational(model), (best,), X, y) == pytest.approx(log_evidence(model, X, y), abs=1e-4)
    grid = np.linspace(-2, 2, 9)[:, None]
    mean, variance = first_layer(model, best, grid)
    kernel = model.layers[0].kernel
    cross = np.asarray(kernel(jnp.asarray(grid), jnp.asarray(X)))
    gram = np.asarray(kernel(jnp.asarray(X), jnp.asarray(X))) + 0.1 * np.eye(12)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(gram, y), atol=1e-5)
    exact = 1.0 - np.sum(cross * np.linalg.solve(gram, cross.T).T, 1)
    np.testing.assert_allclose(variance[:, 0], exact, atol=1e-5)


def random_belief(model, rng, apart):
    def one(layer):
        count = layer.num_features
        scale = 0.3 * rng.standard_normal((layer.width, count, count))
        inputs = layer.inducing_inputs if apart else None
        return GaussianOutputs(jnp.asarray(rng.standard_normal((count, layer.width))), jnp.asarray(scale), inputs)

    return tuple(one(layer) for layer in model.layers)


def test_decoupled_with_equal_sets_equals_coupled():
    X, y = line_data(20)
    model = two_layers(X[::4], hidden_variance=0.5)
    coupled, apart = (random_belief(model, np.random.default_rng(1), flag) for flag in (False, True))
    a = elbo(variational(model), coupled, X, y)
    b = elbo(variational(model, inputs=tuple(layer.inducing_inputs for layer in model.layers)), apart, X, y)
    assert a == pytest.approx(b, rel=1e-7)


def test_decoupled_moments_follow_their_definition():
    """mean = A_a v_a, variance = k - A_b A_b' + A_b S A_b', each from its own inducing inputs."""
    rng = np.random.default_rng(0)
    X, Za, Zb = rng.standard_normal((7, 1)), np.linspace(-2, 2, 5)[:, None], np.linspace(-1, 1, 3)[:, None]
    model = shallow(Za)
    scale = jnp.asarray(0.4 * rng.standard_normal((1, 3, 3)))
    q = GaussianOutputs(jnp.asarray(rng.standard_normal((5, 1))), scale, jnp.asarray(Zb))
    mean, variance = first_layer(model, q, X)
    for_mean, _ = features_and_variance(model, X)
    for_variance, rest = features_and_variance(shallow(Zb), X)
    S = np.asarray(q.cholesky()[0] @ q.cholesky()[0].T)
    np.testing.assert_allclose(mean, for_mean @ np.asarray(q.mean), rtol=1e-8)
    np.testing.assert_allclose(variance[:, 0], rest + np.diag(for_variance @ S @ for_variance.T), rtol=1e-8)
    by_hand = 0.5 * (np.sum(np.asarray(q.mean) ** 2) + np.trace(S) - np.log(np.linalg.det(S)) - 3)
    assert float(q.kl()) == pytest.approx(by_hand)


def test_inner_covariances_start_small_and_the_last_at_the_prior():
    model = two_layers(np.linspace(-1, 1, 4)[:, None], hidden_variance=0.5)
    inner, last = initial_belief(model, (None, None))
    np.testing.assert_allclose(inner.cholesky()[0], np.sqrt(1e-5) * np.eye(4))
    np.testing.assert_allclose(last.cholesky()[0], np.eye(4))
    assert float(last.kl()) == pytest.approx(0.0)


def test_variance_inputs_stay_when_inducing_inputs_are_fixed_and_move_otherwise():
    X, y = line_data(20)
    model = shallow(X[::4])
    inputs = (jnp.asarray(X[::6]),)
    for fixed, moves in ((["layers.0.inducing_inputs"], False), (["likelihood.*"], True)):
        _, (q,) = climb(variational(model, fixed, inputs), X, y, 20)
        assert np.array_equal(q.variance_inputs, inputs[0]) != moves
