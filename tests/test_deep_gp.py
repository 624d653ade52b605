import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import CONFIG, flat_density
from scipy import integrate, stats

from deepwell.assess.small_problems import line_data, problem_of, rows_of, shallow, two_layers
from deepwell.data.rows import minibatch, to_rows
from deepwell.model.deep_gp import (
    Batch,
    log_likelihood,
    log_prior_outputs,
    parameter_names,
    propagate,
    split_parameters,
)
from deepwell.model.initial import Architecture, initial_model, kmeans, principal_directions
from deepwell.model.likelihoods import Gaussian
from deepwell.model.means import Identity, PaddedIdentity, PrincipalProjection
from deepwell.model.priors import Priors, log_prior


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        yield


def exact_gp(X, y, X_new, lengthscale, variance, noise):
    def k(a, b):
        return variance * np.exp(-0.5 * (a - b.T) ** 2 / lengthscale**2)

    solve = np.linalg.solve(k(X, X) + noise * np.eye(len(X)), np.hstack([y, k(X, X_new)]))
    return k(X_new, X) @ solve[:, :1], np.diag(k(X_new, X_new) - k(X_new, X) @ solve[:, 1:])


def posterior_of_v(model, X, y):
    """Mean and covariance of v | y at depth 1 with Z = X, where both objectives agree with the exact GP."""
    projection = model.layers[0].project(model.prepare().layers[0], jnp.asarray(X))
    A = np.asarray(projection.features)
    noise = np.exp(float(model.likelihood.log_noise_variance[0]))
    covariance = np.linalg.inv(A.T @ A / noise + np.eye(A.shape[1]))
    return covariance @ A.T @ y / noise, covariance


def test_inducing_inputs_at_the_data_give_exact_gp_regression():
    X, y = line_data(12)
    model = shallow(X, lengthscale=0.3, noise=0.1, jitter=1e-12)
    mean, covariance = posterior_of_v(model, X, y)
    X_new = np.linspace(-2, 2, 9)[:, None]
    projection = model.layers[0].project(model.prepare().layers[0], jnp.asarray(X_new))
    A = np.asarray(projection.features)
    exact_mean, exact_variance = exact_gp(X, y, X_new, 0.3, 1.0, 0.1)
    np.testing.assert_allclose(A @ mean, exact_mean, atol=1e-5)
    np.testing.assert_allclose(np.diag(A @ covariance @ A.T) + projection.variance, exact_variance, atol=1e-5)
    density = flat_density(CONFIG, problem_of(model), X, y)
    gradient = jax.grad(lambda v: density(jax.random.key(0), v)[0])(jnp.asarray(mean[:, 0]))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)  # the exact posterior mean is the mode of the density


def test_vanishing_hidden_variance_makes_depth_two_equal_depth_one():
    X, _ = line_data()
    Z = X[::5]
    deep, flat = two_layers(Z, hidden_variance=1e-14), shallow(Z)
    v = jnp.asarray(np.random.default_rng(0).standard_normal((len(Z), 1)))
    noise = (jnp.ones((len(X), 1)),)
    first = deep.layers[0].project(deep.prepare().layers[0], jnp.asarray(X))
    deep_f = propagate(deep, deep.prepare(), (v, v), first, noise)
    flat_f = propagate(flat, flat.prepare(), (v,), flat.layers[0].project(flat.prepare().layers[0], jnp.asarray(X)), ())
    for a, b in zip(deep_f, flat_f, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("objective", ["predictive", "expected"])
def test_monte_carlo_over_a_hidden_layer_equals_quadrature(objective):
    X, y = line_data(6)
    model = two_layers(X[::2], hidden_variance=0.5)
    prepared = model.prepare()
    rng = np.random.default_rng(0)
    v = tuple(jnp.asarray(rng.standard_normal((3, 1))) for _ in range(2))
    first = model.layers[0].project(prepared.layers[0], jnp.asarray(X))
    batch = Batch(first, jnp.asarray(y), jnp.ones(6))
    keys = jax.random.split(jax.random.key(0), 10_000)
    draws = jax.vmap(lambda k: log_likelihood(k, model, prepared, v, batch, objective, 1))(keys)

    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def at_node(node):
        return log_likelihood_at(model, prepared, v, first, jnp.asarray(y), jnp.full((6, 1), node), objective)

    by_node = jax.vmap(at_node)(jnp.asarray(nodes))
    exact = np.sum(weights[:, None] * np.array(by_node), 0) / np.sum(weights)
    error = np.std(draws) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - np.mean(exact)) < 5 * error

    bound = [
        float(np.mean(jax.vmap(lambda k, K=K: log_likelihood(k, model, prepared, v, batch, objective, K))(keys[:4000])))
        for K in (1, 4, 16)
    ]
    inside = np.log(np.sum(weights[:, None] * np.exp(np.array(by_node)), 0) / np.sum(weights))
    limit = np.mean(inside)
    assert bound[0] < bound[1] < bound[2] < limit + 5 * error
    assert limit - bound[2] < 0.3 * (limit - bound[0])


def log_likelihood_at(model, prepared, v, first, y, noise, objective):
    mean, variance = propagate(model, prepared, v, first, (noise,))
    if objective == "expected":
        return model.likelihood.variational_expectations(mean, variance, y)
    return model.likelihood.predict_log_density(mean, variance, y)


def test_minibatch_gradients_over_a_partition_average_to_the_full_gradient():
    X, y = line_data(40)
    model = shallow(X[::5])
    rows = rows_of(X, y)
    prepared = model.prepare()
    v = jnp.asarray(np.random.default_rng(0).standard_normal((8, 1)))

    def gradient(start, size):
        index = slice(start, start + size)
        batch = Batch(model.layers[0].project(prepared.layers[0], rows.X[index]), rows.y[index], jnp.ones(size))
        return jax.grad(lambda v: log_likelihood(jax.random.key(0), model, prepared, (v,), batch, "predictive", 1))(v)

    parts = [gradient(start, 10) for start in range(0, 40, 10)]
    np.testing.assert_allclose(np.mean(parts, 0), gradient(0, 40), rtol=1e-10)


def test_every_row_is_equally_likely_in_a_minibatch_and_padding_never():
    number = np.arange(11.0)[:, None]
    rows = to_rows(np.random.default_rng(0), number, number, 3)
    keys = jax.random.split(jax.random.key(0), 6000)
    (index, same), weight = jax.vmap(lambda k: minibatch(k, (rows.X, rows.y), rows.num_data, 3))(keys)
    np.testing.assert_array_equal(index, same)
    counts = np.bincount(np.asarray(index).astype(int).ravel())
    assert len(counts) == 11
    assert stats.chisquare(counts / 3).pvalue > 1e-6
    assert all(len(np.unique(run)) == 3 for run in np.asarray(index)[:100])
    assert np.all(weight == 1)
    _, weight = minibatch(keys[0], rows.X, rows.num_data, None)
    np.testing.assert_array_equal(weight, [1.0] * 11 + [0.0] * 24)


def test_gaussian_likelihood_answers_equal_integration_and_scipy():
    likelihood = Gaussian(jnp.log(jnp.array([0.3, 0.7])), 0.0)
    mean, variance, y = jnp.array([[0.2, -1.0]]), jnp.array([[0.5, 0.1]]), jnp.array([[0.4, 0.3]])
    log_noise = stats.norm(np.asarray(mean)[0], np.sqrt([0.3, 0.7])).logpdf(np.asarray(y)[0])
    np.testing.assert_allclose(likelihood.log_prob(mean, y), [log_noise.sum()])
    total = stats.norm([0.2, -1.0], np.sqrt([0.8, 0.8])).logpdf([0.4, 0.3]).sum()
    np.testing.assert_allclose(likelihood.predict_log_density(mean, variance, y), [total])

    def expectation(j):
        q = stats.norm(float(mean[0, j]), float(jnp.sqrt(variance[0, j])))
        noise = float(likelihood.noise_variance[j])
        return integrate.quad(lambda f: q.pdf(f) * stats.norm(f, np.sqrt(noise)).logpdf(float(y[0, j])), -9, 9)[0]

    np.testing.assert_allclose(
        likelihood.variational_expectations(mean, variance, y), [expectation(0) + expectation(1)], rtol=1e-7
    )
    predicted = likelihood.predict_mean_and_var(mean, variance)
    np.testing.assert_allclose(predicted[0], mean)
    np.testing.assert_allclose(predicted[1], [[0.8, 0.8]])


def test_whitened_prior_equals_the_prior_of_u():
    X, _ = line_data(5)
    layer = shallow(X, jitter=1e-12).layers[0]
    inverse = np.asarray(shallow(X, jitter=1e-12).prepare().layers[0])
    v = np.random.default_rng(0).standard_normal((5, 1))
    u = np.linalg.solve(inverse, v)[:, 0]
    prior = stats.multivariate_normal(np.zeros(5), np.asarray(layer.gram()), allow_singular=True)
    jacobian = np.sum(np.log(np.diag(inverse)))
    assert prior.logpdf(u) - jacobian == pytest.approx(float(log_prior_outputs((jnp.asarray(v),))), rel=1e-4)


ARCHITECTURE = Architecture((3, 4), (10, 8, 6), ("se", "matern32", "se+linear"), 0.01, 1.0)


def noise_of(targets):
    return Gaussian(jnp.full((targets,), np.log(0.1), float))


def test_layers_may_differ_in_width_kernel_and_inducing_points():
    rng = np.random.default_rng(0)
    model = initial_model(rng, rng.standard_normal((50, 5)), 2, noise_of(2), ARCHITECTURE)
    assert [layer.inducing_inputs.shape for layer in model.layers] == [(10, 5), (8, 3), (6, 4)]
    assert isinstance(model.layers[0].mean, PrincipalProjection)
    assert isinstance(model.layers[1].mean, PaddedIdentity)
    first = model.layers[0].project(model.prepare().layers[0], jnp.zeros((7, 5)))
    mean, variance = propagate(
        model, model.prepare(), model.zero_outputs(), first, model.hidden_noise(jax.random.key(0), (7,))
    )
    assert mean.shape == (7, 2)
    assert variance.shape == (7, 1)
    assert isinstance(
        initial_model(rng, rng.standard_normal((9, 3)), 1, noise_of(1), ARCHITECTURE).layers[0].mean, Identity
    )


def test_fixed_parameters_and_principal_directions_are_not_in_theta():
    rng = np.random.default_rng(0)
    model = initial_model(rng, rng.standard_normal((50, 5)), 1, noise_of(1), ARCHITECTURE)
    theta, constants = split_parameters(model, ["likelihood.*", "layers.0.kernel.log_variance"])
    assert theta.likelihood.log_noise_variance is None
    assert theta.layers[0].kernel.log_variance is None
    assert theta.layers[0].mean.directions is None
    assert theta.layers[1].kernel.log_variance is not None
    assert constants.layers[0].mean.directions is not None
    assert "layers.2.inducing_inputs" in parameter_names(model)
    with pytest.raises(ValueError, match="'noise' matches no parameter"):
        split_parameters(model, ["noise"])


def test_principal_directions_are_the_leading_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) * np.array([1.0, 5.0, 0.1, 3.0])
    directions = principal_directions(X, 2)
    np.testing.assert_allclose(np.abs(directions), np.eye(4)[:, [1, 3]], atol=0.05)
    assert np.all(directions[[1, 3], [0, 1]] > 0)


def test_kmeans_centres_are_distinct_and_close_to_the_clusters():
    rng = np.random.default_rng(0)
    corners = np.array(list(itertools.product([-5.0, 5.0], repeat=2)))
    X = np.repeat(corners, 50, axis=0) + 0.1 * rng.standard_normal((200, 2))
    found = kmeans(rng, X, 20)
    assert len(np.unique(found, axis=0)) == len(found) <= 20
    assert np.min(np.linalg.norm(found[:, None] - corners, axis=2), axis=1).max() < 0.5
    np.testing.assert_array_equal(kmeans(rng, np.ones((30, 2)), 5), [[1.0, 1.0]])


def test_priors_are_log_normal_densities_and_normal_around_the_start_of_inducing_inputs():
    model = shallow(np.linspace(-1, 1, 4)[:, None], lengthscale=0.5, variance=2.0, noise=0.1)
    priors = Priors()
    expected = sum(
        stats.norm(np.log(prior.median), prior.scale).logpdf(np.log(value))
        + np.log(prior.scale)
        + 0.5 * np.log(2 * np.pi)
        for prior, value in ((priors.lengthscale, 0.5), (priors.variance, 2.0), (priors.noise, 0.1))
    )
    assert float(log_prior(model, model, priors)) == pytest.approx(expected)
    moved = eqx.tree_at(lambda m: m.layers[0].inducing_inputs, model, model.layers[0].inducing_inputs + 0.3)
    assert float(log_prior(moved, model, priors)) == pytest.approx(expected - 0.5 * 4 * (0.3 / 0.4) ** 2)


def test_density_scales_likelihood_and_priors_by_the_number_of_rows():
    X, y = line_data(20)
    model = shallow(X[::4])
    config = CONFIG._replace(priors=Priors())
    v = jnp.asarray(np.random.default_rng(0).standard_normal(5))
    value, fit = flat_density(config, problem_of(model), X, y)(jax.random.key(1), v)
    by_hand = fit + (log_prior_outputs((v,)) + log_prior(model, model, Priors())) / 20.0
    assert float(value) == pytest.approx(float(by_hand))
