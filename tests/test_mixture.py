import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from deepwell import InputError
from deepwell.data.scaling import Scaling
from deepwell.predict.diagnostics import diagnose, split_r_hat
from deepwell.predict.mixture import Mixture


def mixture(seed=0, samples=7, rows=3, targets=1, offset=50.0, scale=4.0):
    rng = np.random.default_rng(seed)
    return Mixture(
        rng.standard_normal((samples, rows, targets)),
        rng.uniform(0.01, 0.5, (samples, rows, 1)),
        rng.uniform(0.05, 0.2, (1, targets)),
        Scaling(np.full(targets, offset), np.full(targets, scale)),
        targets == 1,
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_density_integrates_to_one_in_the_users_units(seed, offset, scale):
    m = mixture(seed, rows=1, offset=offset, scale=scale)
    grid = offset + scale * np.linspace(-12, 12, 4001)
    many = Mixture(
        np.repeat(m.means, 4001, 1),
        np.repeat(m.function_variances, 4001, 1),
        m.noise_variances,
        m.scaling,
        True,
    )
    density = np.exp(many.log_prob(grid))
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    mean = integrate.trapezoid(density * grid, grid)
    assert m.mean[0] == pytest.approx(mean, rel=1e-6, abs=1e-6 * scale)
    assert m.var[0] == pytest.approx(integrate.trapezoid(density * (grid - mean) ** 2, grid), rel=1e-5)
    np.testing.assert_allclose(np.diff(many.cdf(grid)).sum(), 1.0, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.001, 0.999))
def test_quantile_inverts_the_cdf(seed, q):
    m = mixture(seed)
    np.testing.assert_allclose(m.cdf(m.quantile(q)), q, atol=1e-8)


def test_quantiles_of_far_apart_narrow_components():
    means = np.array([-100.0, 0.0, 100.0])[:, None, None]
    m = Mixture(means, np.zeros((3, 1, 1)), np.full((1, 1), 1e-6), Scaling(np.zeros(1), np.ones(1)), True)
    for q in (0.01, 0.34, 0.5, 0.99):
        assert m.cdf(m.quantile(q))[0] == pytest.approx(q, abs=1e-6)


def test_crps_equals_its_integral():
    m = mixture(samples=6)
    y = np.array([45.0, 50.0, 58.0])
    for row in range(3):
        one = Mixture(m.means[:, [row]], m.function_variances[:, [row]], m.noise_variances, m.scaling, True)

        def integrand(t, one=one, row=row):
            return (one.cdf(np.array([t]))[0] - (t >= y[row])) ** 2

        exact = (
            integrate.quad(integrand, 0, y[row], limit=200)[0] + integrate.quad(integrand, y[row], 100, limit=200)[0]
        )
        assert m.crps(y)[row] == pytest.approx(exact, rel=1e-5)
    odd = mixture(samples=5)
    gaussian = Mixture(odd.means[:1], odd.function_variances[:1], odd.noise_variances, odd.scaling, True)
    sigma = gaussian.std
    z = (y - gaussian.mean) / sigma
    closed = sigma * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(gaussian.crps(y), closed, rtol=1e-10)


def test_variance_splits_into_function_and_noise_and_draws_have_the_moments():
    m = mixture(samples=50, rows=2)
    np.testing.assert_allclose(m.var, m.function_var + m.noise_var)
    np.testing.assert_allclose(m.noise_var, m.noise_variances[0, 0, 0, 0] * 16.0)
    draws = m.sample(100_000, seed=1)
    assert draws.shape == (100_000, 2)
    np.testing.assert_allclose(draws.mean(0), m.mean, atol=0.1)
    np.testing.assert_allclose(draws.var(0), m.var, rtol=0.03)
    np.testing.assert_array_equal(draws[:5], m.sample(100_000, seed=1)[:5])


def test_several_targets_have_a_joint_density_and_marginal_quantiles():
    m = mixture(targets=2)
    y = np.full((3, 2), 51.0)
    assert m.mean.shape == m.std.shape == m.quantile(0.3).shape == m.crps(y).shape == (3, 2)
    z = (y - 50.0) / 4.0
    variances = m.function_variances + m.noise_variances[..., 0]
    per_sample = stats.norm(m.means, np.sqrt(variances)).logpdf(z).sum(-1)
    expected = np.log(np.mean(np.exp(per_sample), 0)) - 2 * np.log(4.0)
    np.testing.assert_allclose(m.log_prob(y), expected)


def test_offsets_beyond_single_precision_survive():
    m = mixture(offset=1e9, scale=1e-2)
    m32 = Mixture(
        m.means.astype(np.float32), m.function_variances.astype(np.float32), m.noise_variances, m.scaling, True
    )
    np.testing.assert_allclose(m32.mean - 1e9, m.mean - 1e9, atol=1e-6)
    np.testing.assert_allclose(m32.log_prob(m.mean), m.log_prob(m.mean), rtol=1e-4)


def test_blocks_of_rows_give_the_same_answers(monkeypatch):
    m = mixture(rows=50)
    y = np.linspace(40, 60, 50)
    whole = (m.mean, m.log_prob(y), m.quantile(0.1), m.crps(y))
    monkeypatch.setattr("deepwell.predict.mixture.COMPONENTS_AT_ONCE", 1)
    for a, b in zip(whole, (m.mean, m.log_prob(y), m.quantile(0.1), m.crps(y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_extreme_units_have_a_standard_deviation(scale):
    m = mixture(offset=0.0, scale=scale)
    assert np.all(np.isfinite(m.std))
    np.testing.assert_allclose(m.std / scale, mixture(offset=0.0, scale=1.0).std)


def test_a_function_known_exactly_has_no_variance():
    m = mixture(samples=1)
    known = Mixture(m.means, np.zeros_like(m.means), m.noise_variances, m.scaling, True)
    np.testing.assert_array_equal(known.function_var, 0.0)


def test_bad_questions_get_a_sentence():
    m = mixture()
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        m.quantile(1.0)
    with pytest.raises(InputError, match="level"):
        m.interval(0.0)
    with pytest.raises(InputError, match="y has shape"):
        m.log_prob(np.zeros(5))


def test_scores_of_a_perfectly_specified_prediction():
    rng = np.random.default_rng(0)
    rows = 4000
    y = rng.standard_normal(rows)
    standard = Mixture(
        np.zeros((1, rows, 1)), np.zeros((1, rows, 1)), np.ones((1, 1)), Scaling(np.zeros(1), np.ones(1)), True
    )
    s = standard.scores(y)
    assert s["test_log_likelihood"] == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.05)
    assert s["rmse"] == pytest.approx(1.0, abs=0.05)
    assert s["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=0.03)
    assert s["coverage_95"] == pytest.approx(0.95, abs=0.02)


def test_split_r_hat_tells_mixed_chains_from_stuck_and_drifting_ones():
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((4, 400, 20))
    assert diagnose(mixed).converged
    assert "agree" in str(diagnose(mixed))
    apart = mixed + 3.0 * np.arange(4)[:, None, None]
    assert split_r_hat(apart).min() > 2.0
    drifting = mixed[:1] + np.linspace(0, 5, 400)[:, None]
    assert not diagnose(drifting).converged
    assert "run longer" in str(diagnose(drifting))
    np.testing.assert_array_equal(split_r_hat(np.zeros((2, 8, 1))), 1.0)
    assert "too few" in str(diagnose(mixed[:, :3]))
