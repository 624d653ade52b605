"""The samplers against each other and against closed forms, on function values, within Monte Carlo error."""

import jax
import numpy as np
import pytest

import deepwell
from deepwell.assess.check.agreement import GRID, disagreement, function_values, wave
from deepwell.assess.small_problems import features_and_variance, quadratic
from deepwell.model.priors import Priors


def learn(inference, **settings):
    """theta fixed: only v (and for nuts the hidden noise) is sampled."""
    pytest.importorskip("blackjax")
    budget = {
        "nuts": {"num_chains": 8, "burn_in": 500, "num_samples": 1000},
        "sghmc": {"num_chains": 32, "burn_in": 3000, "num_samples": 50, "spacing": 100, "step_size": 0.05},
    }[inference]
    return deepwell.fit(*wave(), inference=inference, fixed=["*"], width=1, local=False, **budget, **settings)


def noise_variances(model):
    """Of every sample."""
    likelihoods, _ = model.posterior.likelihoods()
    return np.asarray(jax.vmap(lambda likelihood: likelihood.noise_variance)(likelihoods))


def assert_agree(a, b, tolerance):
    assert disagreement(a, b) < tolerance


def test_at_depth_one_both_samplers_have_the_closed_form_posterior():
    X, y = wave()
    settings = {"depth": 1, "num_inducing": 6, "noise_variance": 0.15}
    nuts, sghmc = (learn(name, **settings) for name in ("nuts", "sghmc"))
    assert_agree(function_values(sghmc), function_values(nuts), 0.12)
    gp = nuts.posterior.model
    q = quadratic(gp, nuts.x_scaling.standardise(X), nuts.y_scaling.standardise(y[:, None]), "predictive")
    features, rest = features_and_variance(gp, nuts.x_scaling.standardise(GRID))
    variance = np.sum(features * np.linalg.solve(q.H, features.T).T, 1) / len(X) + rest
    exact = features @ np.linalg.solve(q.H, q.b) + np.sqrt(variance) * np.random.default_rng(2).standard_normal(
        (20_000, len(GRID))
    )
    for model in (nuts, sghmc):
        assert_agree(function_values(model), exact, 0.1)


def test_at_depth_two_they_agree_where_the_bound_is_tight():
    """Z_1 = X: the hidden layer has no variance left, so there is nothing to bound."""
    settings = {"depth": 2, "num_inducing": 16, "hidden_variance": 0.1, "noise_variance": 0.15}
    nuts, sghmc = (learn(name, **settings) for name in ("nuts", "sghmc"))
    np.testing.assert_allclose(
        np.sort(np.asarray(nuts.posterior.model.layers[0].inducing_inputs), 0),
        np.sort(nuts.x_scaling.standardise(wave()[0]), 0),
        atol=1e-6,
    )
    assert_agree(function_values(sghmc), function_values(nuts), 0.2)


@pytest.mark.slow
def test_inner_samples_move_a_loose_problem_towards_its_exact_posterior():
    """Two inducing points in the hidden layer; nuts samples the hidden noise, so its target has no bound in it."""
    settings = {"depth": 2, "num_inducing": (2, 10), "hidden_variance": 0.1, "noise_variance": 0.15}
    exact = learn("nuts", **settings)

    def distance(inner_samples):
        bound = learn("sghmc", inner_samples=inner_samples, **settings)
        means = [np.mean(np.asarray(m.posterior.samples[1]), (0, 1)) for m in (bound, exact)]
        return float(np.sqrt(np.mean((means[0] - means[1]) ** 2)))

    found = [distance(k) for k in (1, 4, 16)]
    print("distance of E[v_2] from the exact posterior's, inner_samples 1, 4, 16:", np.round(found, 3))
    assert found[0] > 2 * found[1]
    assert found[1] > 1.5 * found[2]
    assert found[2] < 0.15


def test_a_net_without_hidden_layers_is_bayesian_linear_regression():
    """Closed form given the noise; the noise by quadrature over its log-normal prior."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 2))
    y = X @ np.array([1.0, -0.5]) + 0.5 * rng.standard_normal(40)
    model = deepwell.fit(
        X, y, inference="bnn", hidden_units=(), num_chains=32, burn_in=3000, num_samples=60, spacing=100,
        step_size=0.05, local=False,
    )  # fmt: skip
    x, z = model.x_scaling.standardise(X), model.y_scaling.standardise(y)
    grid = rng.standard_normal((10, 2))
    design, design_new = (np.column_stack([a / np.sqrt(2), np.ones(len(a))]) for a in (x, grid))
    prior = Priors().noise
    log_noise = np.linspace(-6, 2, 200)
    weights, means, seconds = [], [], []
    for s in log_noise:
        covariance = design @ design.T + np.exp(s) * np.eye(40)
        _, log_det = np.linalg.slogdet(covariance)
        evidence = -0.5 * (log_det + z @ np.linalg.solve(covariance, z))
        weights.append(evidence - 0.5 * ((s - np.log(prior.median)) / prior.scale) ** 2)
        posterior = np.linalg.inv(design.T @ design / np.exp(s) + np.eye(3))
        means.append(design_new @ posterior @ design.T @ z / np.exp(s))
        seconds.append(means[-1] ** 2 + np.sum(design_new * (design_new @ posterior), 1))
    weights = np.exp(np.array(weights) - np.max(weights))
    weights /= np.sum(weights)
    exact_mean = weights @ np.array(means)
    exact_std = np.sqrt(weights @ np.array(seconds) - exact_mean**2)
    prediction = model.predict_dist(model.x_scaling.restore(grid))
    values = prediction.means[..., 0]
    assert np.max(np.abs(np.mean(values, 0) - exact_mean) / exact_std) < 0.12
    np.testing.assert_allclose(np.std(values, 0), exact_std, rtol=0.12)
    sampled = np.log(noise_variances(model))
    assert abs(np.mean(sampled) - weights @ log_noise) < 0.12 * np.sqrt(
        weights @ log_noise**2 - (weights @ log_noise) ** 2
    )


def test_sampling_theta_agrees_with_nuts():
    """sghmc-bayes and nuts, both over v and the noise variance, at depth 1."""
    pytest.importorskip("blackjax")
    X, y = wave(24)
    fixed = ["layers.*"]
    shared = {"depth": 1, "num_inducing": 6, "noise_variance": 0.15, "fixed": fixed, "local": False}
    nuts = deepwell.fit(X, y, inference="nuts", num_chains=8, burn_in=500, num_samples=1000, **shared)
    budget = {"num_chains": 32, "burn_in": 3000, "num_samples": 60, "spacing": 100, "step_size": 0.03}
    ours = deepwell.fit(X, y, inference="sghmc-bayes", **budget, **shared)
    a, b = (np.log(noise_variances(m)).ravel() for m in (ours, nuts))
    assert abs(np.mean(a) - np.mean(b)) < 0.15 * np.std(b)
    assert np.std(a) == pytest.approx(np.std(b), rel=0.15)
    assert_agree(function_values(ours), function_values(nuts), 0.15)
