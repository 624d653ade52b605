"""The local part against exact GP regression, brute force and what must not change, each with a twin that is caught."""

import dataclasses
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import deepwell
from deepwell.assess.small_problems import shallow
from deepwell.data.resolution import resolution, rounding_variance
from deepwell.data.scaling import Scaling
from deepwell.fits import local_part as learning
from deepwell.fits.local_part import floor_under, left_out, log_densities, switched_off
from deepwell.inference.deep_gp_posteriors import shared_theta
from deepwell.inference.posterior import Posterior
from deepwell.model.kernels import Matern32
from deepwell.model.likelihoods import Gaussian
from deepwell.model.likelihoods.numbers import Normals
from deepwell.model.local import LocalKernel, Sites, Tail
from deepwell.numerics.linalg import default_jitter
from deepwell.predict import neighbours as search
from deepwell.predict.blocks import marginals
from deepwell.predict.leave_one_out import carried_over, move_without_target
from deepwell.predict.local_part import joined, local_part
from deepwell.predict.mixture import Mixture
from deepwell.predict.neighbours import nearest


@final
class Lines(Posterior):
    """f = x . slope under each sample, R the same everywhere."""

    slopes: jax.Array
    variance: float = eqx.field(static=True)
    noise: float = eqx.field(static=True)

    @property
    def draws(self):
        return 1, len(self.slopes)

    @property
    def depth(self):
        return 1

    def prepare(self):
        return None

    def first_layers(self, count):
        return self

    def start(self):
        raise NotImplementedError

    def probe_inputs(self):
        return None

    def sampled_parameters(self):
        return {}

    def functions(self, prepared, X):
        means = jnp.einsum("nd,sdp->snp", X, self.slopes)
        return means, jnp.full((*means.shape[:2], 1), self.variance)

    def likelihoods(self):
        return Gaussian(jnp.full((self.slopes.shape[-1],), np.log(self.noise)), 0.0), None


def flat(inputs=1, samples=1, variance=0.8, noise=0.05, targets=1):
    """The posterior that f = 0."""
    return Lines(jnp.zeros((samples, inputs, targets)), variance, noise)


def a_kernel(inputs=1, targets=1, share=1.0, lengthscale=0.4, tail=None, floor=0.0):
    zeros = jnp.zeros((targets,))
    logit = jnp.full((targets,), np.inf if share == 1.0 else np.log(share / (1.0 - share)))
    lengthscales = jnp.full((inputs + targets,), np.log(lengthscale))
    return LocalKernel(lengthscales, logit, zeros, zeros, zeros - np.inf, zeros + floor, tail)


def a_part(posterior, X, y, kernel, count):
    marginal = joined(marginals(posterior, X))
    return local_part(kernel, marginal, jnp.asarray(X, float), jnp.asarray(y, float), count), marginal


def some_rows(rng, count=40, inputs=1):
    X = rng.uniform(-2.0, 2.0, (count, inputs))
    return X, np.sin(3.0 * X[:, :1]) + 0.2 * rng.standard_normal((count, 1))


def covariance(A, B, kernel, variance):
    correlation = Matern32(kernel.log_lengthscales[:-1], jnp.zeros(()))
    return variance * np.asarray(correlation(jnp.asarray(A, float), jnp.asarray(B, float)), np.float64)


@pytest.fixture(scope="module")
def fitted():
    """A small fit of each noise of numbers, with its standardised rows."""
    X, y = some_rows(np.random.default_rng(0), 60, 2)
    options = {"preset": "quick", "burn_in": 60, "num_samples": 5, "spacing": 2, "num_inducing": 10}
    models = {
        "gaussian": deepwell.fit(X, y[:, 0], **options),
        "student-t": deepwell.fit(X, y[:, 0], likelihood="student-t", inference="sghmc-bayes", **options),
        "heteroscedastic": deepwell.fit(X, y[:, 0], likelihood="heteroscedastic", inference="dsvi", **options),
        "bnn": deepwell.fit(X, y[:, 0], inference="bnn", **options),
        "two targets": deepwell.fit(X, np.hstack([y, y**2]), **options),
    }
    return X, y, models


KINDS = ("gaussian", "student-t", "heteroscedastic", "bnn", "two targets")


def learned(fitted, kind):
    X, y, models = fitted
    model = models[kind]
    targets = np.hstack([y, y**2]) if kind == "two targets" else y
    inputs = model.x_scaling.standardise(X)
    return (
        model,
        inputs,
        learning.learn_local_part(model.posterior, inputs, model.y_scaling.standardise(targets), jax.random.key(0)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_without_correlation_predictions_are_the_models_own_bit_for_bit(fitted, kind):
    model, inputs, result = learned(fitted, kind)
    off = dataclasses.replace(result.part, kernel=switched_off(result.part.kernel))
    for own, corrected, on in zip(
        marginals(model.posterior, inputs),
        off.marginals(model.posterior, inputs),
        result.part.marginals(model.posterior, inputs),
        strict=True,
    ):
        for a, b in zip(own, corrected, strict=True):
            np.testing.assert_array_equal(np.broadcast_to(a, b.shape), b)
        assert np.all(np.isfinite(on.mean))
        assert np.all(on.variance[..., None] + on.noise > 0.0)
        assert np.any(on.mean != own.mean)  # the twin: switched on, it does change them


@pytest.mark.parametrize("kind", ["gaussian", "two targets"])
def test_a_row_is_predicted_from_that_row_alone(fitted, kind):
    model, inputs, result = learned(fitted, kind)
    (together,) = result.part.marginals(model.posterior, inputs)
    for i in (0, 17, 59):
        (alone,) = result.part.marginals(model.posterior, inputs[i : i + 1])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b[:, i : i + 1] if b.shape[1] > 1 else b)


@pytest.mark.parametrize(("double", "tolerance"), [(False, 2e-3), (True, 1e-6)])
def test_with_all_rows_as_neighbours_it_is_exact_regression(double, tolerance):
    with jax.enable_x64(double):
        rng = np.random.default_rng(1)
        X, y = some_rows(rng)
        new = rng.uniform(-2.0, 2.0, (7, 1))
        posterior, kernel = flat(), a_kernel()
        part, _ = a_part(posterior, X, y, kernel, len(X))
        (found,) = part.marginals(posterior, new)
        C = covariance(X, X, kernel, 0.8) + (0.05 + 0.85 * default_jitter()) * np.eye(len(X))
        across = covariance(new, X, kernel, 0.8)
        mean, variance = across @ np.linalg.solve(C, y), 0.8 - np.sum(across * np.linalg.solve(C, across.T).T, 1)
        np.testing.assert_allclose(found.mean[0], mean, atol=tolerance)
        np.testing.assert_allclose(found.variance[0, :, 0], variance, atol=tolerance)
        fewer, _ = a_part(posterior, X, y, kernel, 3)
        (approximate,) = fewer.marginals(posterior, new)
        assert np.max(np.abs(approximate.mean[0] - mean)) > 5 * tolerance  # so few neighbours are not enough


def nearest_with_itself(kernel, rows, queries, count, own):
    """The leak: a row may be its own neighbour."""
    return nearest(np.asarray(rows), np.asarray(queries), count)


@pytest.mark.parametrize("leak", [False, True])
def test_leave_one_out_is_that_of_exact_regression(leak, monkeypatch):
    """Sundararajan, Keerthi (2001): mean y_i - [C^-1 y]_i / [C^-1]_ii, variance 1 / [C^-1]_ii."""
    if leak:
        monkeypatch.setattr(
            learning,
            "nearest_in",
            lambda kernel, rows, queries, count, own: nearest(np.asarray(rows), np.asarray(queries), count),
        )
    with jax.enable_x64(True):
        X, y = some_rows(np.random.default_rng(2))
        posterior, kernel = flat(), a_kernel()
        part, marginal = a_part(posterior, X, y, kernel, len(X) - 1)
        probes = left_out(part, jnp.asarray(y), marginal, np.arange(len(X)))
        inverse = np.linalg.inv(covariance(X, X, kernel, 0.8) + (0.05 + 0.85 * default_jitter()) * np.eye(len(X)))
        variance = 1.0 / np.diag(inverse)
        mean = y[:, 0] - variance * (inverse @ y)[:, 0]
        expected = norm.logpdf(y[:, 0], mean, np.sqrt(variance))
        agrees = np.allclose(log_densities(kernel, probes), expected, atol=1e-4)
        assert agrees != leak


@pytest.mark.parametrize("leak", [False, True])
def test_no_density_of_pure_noise_beats_that_of_the_noise(leak, monkeypatch):
    """A row among its own neighbours would."""
    if leak:
        monkeypatch.setattr(
            learning,
            "nearest_in",
            lambda kernel, rows, queries, count, own: nearest(np.asarray(rows), np.asarray(queries), count),
        )
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal((300, 1))
    result = learning.learn_local_part(flat(3, 2, 0.5, 0.5), X, y, jax.random.key(0), 8)
    best = np.mean(norm.logpdf(y, 0.0, np.std(y)))
    assert (result.log_density > best + 0.02) == leak


@pytest.mark.parametrize("noise", [0.5, 0.55])
def test_a_row_taken_out_of_the_posterior_leaves_the_posterior_of_the_others(noise):
    """Bayesian linear regression, samples with exactly its moments; a wrong noise variance is the twin."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(4)
        X, y, true = rng.standard_normal((12, 3)), rng.standard_normal(12), 0.5

        def posterior(rows):
            S = np.linalg.inv(np.eye(3) + X[rows].T @ X[rows] / true)
            return S @ X[rows].T @ y[rows] / true, S

        raw = rng.standard_normal((50, 3))
        white = np.linalg.solve(np.linalg.cholesky(np.cov(raw.T, bias=True)), (raw - raw.mean(0)).T).T
        mean, S = posterior(np.arange(12))
        draws = (mean + white @ np.linalg.cholesky(S).T) @ X.T
        i, others = 4, [0, 4, 9]
        move = move_without_target(jnp.asarray(draws[:, i]), jnp.asarray(y[i]), jnp.asarray(noise))
        moved = draws[:, others].T + carried_over(move, jnp.asarray(draws[:, i]), jnp.asarray(draws[:, others].T))
        mean, S = posterior(np.delete(np.arange(12), i))
        right_mean = np.allclose(np.mean(moved, 1), X[others] @ mean, atol=1e-8)
        right_covariance = np.allclose(np.cov(moved, bias=True), X[others] @ S @ X[others].T, atol=1e-8)
        assert (right_mean, right_covariance) == (noise == true, noise == true)


@pytest.mark.parametrize("every_row_is_inducing", [True, False])
def test_at_depth_one_with_all_rows_inducing_there_is_nothing_to_add(every_row_is_inducing):
    with jax.enable_x64(True):
        rng = np.random.default_rng(5)
        X, y = some_rows(rng, 20)
        model = shallow(X if every_row_is_inducing else X[:4], jitter=1e-13)
        draws = jnp.asarray(rng.standard_normal((1, 3, len(model.layers[0].inducing_inputs))))
        posterior = shared_theta(jax.random.key(0), model, draws)
        part, _ = a_part(posterior, X, y, a_kernel(), 8)
        new = rng.uniform(-2.0, 2.0, (9, 1))
        (own,), (corrected,) = marginals(posterior, new), part.marginals(posterior, new)
        nothing_added = all(np.allclose(a, b, atol=1e-4) for a, b in zip(own, corrected, strict=True))
        assert nothing_added == every_row_is_inducing


def test_rows_without_conditional_variance_say_nothing():
    kernel = a_kernel()
    row = Sites(jnp.zeros((2,)), jnp.full((1,), 0.3), jnp.full((1,), 0.1))
    around = Sites(jnp.full((5, 2), 0.01), jnp.zeros((5, 1)), jnp.full((5, 1), 0.1))
    conditioned = kernel.condition(row, around)
    assert not np.any(conditioned.weights)
    assert not np.any(conditioned.explained)
    assert np.all(kernel.condition(row, around._replace(variance=jnp.full((5, 1), 0.3))).explained > 0.1)


def test_learning_finds_the_scale_and_the_gain_of_a_residual_that_is_a_gp():
    rng = np.random.default_rng(6)
    X = rng.uniform(-2.0, 2.0, (400, 2))
    kernel = a_kernel(2, lengthscale=0.7)
    C = covariance(X, X, kernel, 0.8) + 0.05 * np.eye(400)
    y = np.linalg.cholesky(C) @ rng.standard_normal((400, 1))
    result = learning.learn_local_part(flat(2, 3), X, y, jax.random.key(0))
    inverse = np.linalg.inv(C)
    variance = 1.0 / np.diag(inverse)
    best = np.mean(norm.logpdf(y[:, 0], y[:, 0] - variance * (inverse @ y)[:, 0], np.sqrt(variance)))
    assert result.log_density == pytest.approx(best, abs=0.05)
    assert result.log_density > result.log_density_without + 0.3
    assert np.exp(result.part.kernel.log_lengthscales[:2]) == pytest.approx([0.7, 0.7], rel=0.5)


@pytest.mark.parametrize("lengthscale", [1e-3, 1e-6])
def test_a_very_short_lengthscale_says_whether_two_values_are_equal(lengthscale):
    """As of an identifier: rows that share it are correlated, others are not, and the numbers stay finite."""
    rng = np.random.default_rng(12)
    X = rng.integers(0, 10, (200, 1)) / 3.0
    y = rng.standard_normal(10)[np.round(3.0 * X).astype(int)]
    posterior = flat()
    lengthscales = jnp.log(jnp.asarray([lengthscale, 1.0]))
    part, marginal = a_part(posterior, X, y, dataclasses.replace(a_kernel(), log_lengthscales=lengthscales), 32)
    probes = left_out(part, jnp.asarray(y, float), marginal, np.arange(200))
    value, gradient = jax.value_and_grad(lambda kernel: jnp.mean(log_densities(kernel, probes)))(part.kernel)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient.log_lengthscales))
    (found,) = part.marginals(posterior, X[:20])
    np.testing.assert_allclose(found.mean[0], y[:20], atol=0.05 * np.max(np.abs(y)))


def test_far_from_all_rows_only_the_calibration_is_left():
    X, y = some_rows(np.random.default_rng(7))
    posterior = flat()
    part, _ = a_part(posterior, X, y, a_kernel(), 8)
    (found,) = part.marginals(posterior, np.full((1, 1), 1e4))
    np.testing.assert_array_equal(found.mean, 0.0)
    np.testing.assert_allclose(found.variance, 0.8, rtol=1e-6)


@pytest.mark.parametrize("log_degrees", [0.0, 1.5, 12.0])
def test_the_tail_keeps_the_variance_and_tends_to_a_normal(log_degrees):
    tail = Tail(jnp.full((1,), log_degrees))
    tau, log_weights = (np.asarray(x, np.float64) for x in tail.nodes())
    assert np.sum(np.exp(log_weights)) == pytest.approx(1.0, rel=1e-5)
    assert np.sum(np.exp(log_weights) * tau) == pytest.approx(1.0, rel=1e-5)
    kurtosis = np.sum(np.exp(log_weights) * tau**2)
    assert (kurtosis < 1.001) if log_degrees > 10.0 else (kurtosis > 1.001)
    X, y = some_rows(np.random.default_rng(8))
    posterior = flat(samples=2)
    kernel = a_kernel(share=0.7)
    found = {}
    for name, own in (("normal", None), ("tail", tail)):
        part, _ = a_part(posterior, X, y, dataclasses.replace(kernel, tail=own), 8)
        (m,) = part.marginals(posterior, X[:5])
        weights = np.exp(np.asarray(m.log_weights, np.float64))
        found[name] = Mixture(m.mean, m.variance, m.noise, Scaling(np.zeros(1), np.ones(1)), True, weights)
    for question in ("mean", "var", "function_var", "noise_var"):
        np.testing.assert_allclose(getattr(found["tail"], question), getattr(found["normal"], question), rtol=1e-4)
    assert np.all(np.diff(found["tail"].cdf(found["tail"].quantile(0.9)) - 0.9) < 1e-6)
    far = found["normal"].mean + 6.0 * found["normal"].std
    assert np.all((found["tail"].log_prob(far) > found["normal"].log_prob(far) + 1.0) == (log_degrees < 5.0))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("at_once", [2**23, 7 * 200])
def test_nearest_rows_are_those_of_brute_force(own, at_once, monkeypatch):
    monkeypatch.setattr(search, "DISTANCES_AT_ONCE", at_once)
    rng = np.random.default_rng(9)
    rows = 100.0 + rng.standard_normal((200, 4))
    rows[50:60] = rows[40:50]  # duplicates are rows of their own
    numbers = np.arange(30, 70)
    queries = rows[numbers] if own else 100.0 + rng.standard_normal((40, 4))
    found = nearest(rows, queries, 6, numbers if own else None)
    distances = np.sum((queries[:, None] - rows) ** 2, -1)
    if own:
        distances[np.arange(40), numbers] = np.inf
        assert not np.any(found == numbers[:, None])
        assert np.all(found[10:30, 0] == np.r_[50:60, 40:50])
    chosen = np.take_along_axis(distances, found, 1)
    np.testing.assert_allclose(chosen, np.sort(distances, 1)[:, :6], atol=1e-4)
    assert np.all(np.diff(chosen, axis=1) > -1e-4)
    with pytest.raises(ValueError, match="neighbours are wanted of"):
        nearest(rows, queries, 200 + (not own), numbers if own else None)


def test_the_resolution_of_a_column_is_its_smallest_gap():
    columns = np.array([[1.0, 0.1, 5.0], [2.0, 0.1 + 1e-16, 5.0], [4.0, 0.3, 5.0], [2.0, 0.9, 5.0]])
    gaps = resolution(columns)
    np.testing.assert_allclose(gaps, [1.0, 0.2, np.inf])
    np.testing.assert_allclose(rounding_variance(gaps), [1.0 / 12.0, 0.04 / 12.0, 0.0])
    rng = np.random.default_rng(10)
    exact = rng.uniform(0.0, 100.0, 100_000)
    assert np.var(exact - np.round(exact)) == pytest.approx(rounding_variance(np.ones(1))[0], rel=0.02)


def test_rounded_values_have_a_floor_and_an_exact_grid_has_none():
    rng = np.random.default_rng(11)
    gap = np.array([0.5, 0.5, np.inf])
    errors = np.column_stack([rng.uniform(-0.25, 0.25, 500), rng.uniform(-0.02, 0.02, 500), rng.standard_normal(500)])
    np.testing.assert_allclose(floor_under(gap, jnp.asarray(errors)), [0.25 / 12.0, 0.0, 0.0], rtol=1e-5)


@pytest.mark.parametrize("floor", [0.02, 0.0])
def test_duplicates_of_integers_do_not_explode(floor):
    """A row that occurs twenty times with one target, next to noise that was learned to be small."""
    X, y = np.zeros((20, 1)), np.ones((20, 1))
    posterior = flat(variance=0.8, noise=1e-6)
    for tail in (None, Tail(jnp.zeros((1,)))):
        part, _ = a_part(posterior, X, y, a_kernel(floor=floor, tail=tail), 8)
        (found,) = part.marginals(posterior, np.zeros((1, 1)))
        least = np.min(found.variance[..., None] + found.noise)
        assert (least >= 0.02 * (1.0 - 1e-5)) == (floor > 0.0)


def test_blocks_join_whatever_is_alike_in_all_rows():
    alike = Normals(np.zeros((2, 3, 1)), np.ones((2, 3, 1)), np.ones((2, 1, 1, 1)), np.zeros((1, 1, 1, 1)))
    whole = joined([alike, alike])
    assert [x.shape[1] for x in whole] == [6, 6, 1, 1]
