"""Changing noise, heavy tails and counts: where the right likelihood wins, and the distributions it predicts with."""

import numpy as np
import pytest
from scipy import stats

import deepwell
from deepwell import CountMixture, InputError, Mixture
from deepwell.data.scaling import Scaling

BUDGET = {"preset": "quick", "num_inducing": 16, "burn_in": 800, "learning_rate": 0.03}


def growing_noise(seed, rows=300):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, rows)
    y = np.sin(2.0 * x) + np.exp(x - 2.0) * rng.standard_normal(rows)
    return x[:, None], y, stats.norm.logpdf(y, np.sin(2.0 * x), np.exp(x - 2.0))


def heavy_tails(seed, rows=300):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, rows)
    y = np.sin(2.0 * x) + 0.1 * rng.standard_t(2.5, rows)
    return x[:, None], y, stats.t.logpdf(y, 2.5, np.sin(2.0 * x), 0.1)


def counts(seed, rows=300):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, rows)
    rate = np.exp(0.5 + np.sin(2.0 * x))
    y = rng.poisson(rate).astype(float)
    return x[:, None], y, stats.poisson.logpmf(y, rate)


TOYS = {"heteroscedastic": growing_noise, "student-t": heavy_tails, "poisson": counts}
MARGINS = {
    ("heteroscedastic", "expected"): 0.4, ("student-t", "expected"): 0.15, ("student-t", "predictive"): 0.05,
    ("heteroscedastic", "predictive"): 0.1, ("poisson", "predictive"): 0.1,
}  # fmt: skip
"""By how many nats a row the right likelihood must beat Gaussian noise; a deep GP that is learned by the predictive
objective can bend its own variance to the noise, so it leaves less to gain."""


SLOW = {("heteroscedastic", "predictive"), ("student-t", "predictive")}


def log_likelihood_of(toy, **settings):
    X, y, _ = toy(0)
    X_new, y_new, truth = toy(1)
    found = deepwell.fit(X, y, **settings, **BUDGET).predict_dist(X_new).scores(y_new)
    return found["test_log_likelihood"], np.mean(truth), found["coverage_95"]


@pytest.mark.parametrize(
    ("likelihood", "objective"),
    [pytest.param(*case, marks=[pytest.mark.slow] if case in SLOW else []) for case in MARGINS],
)
def test_the_right_likelihood_wins(likelihood, objective):
    toy = TOYS[likelihood]
    right, truth, coverage = log_likelihood_of(toy, likelihood=likelihood, objective=objective)
    gaussian, _, _ = log_likelihood_of(toy, objective=objective)
    assert right > gaussian + MARGINS[likelihood, objective]
    assert right > truth - 0.25
    assert 0.9 <= coverage <= 0.995


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [
        ("sghmc-bayes", "poisson"), ("dsvi", "student-t"), ("dsvi-decoupled", "heteroscedastic"),
    ],
)  # fmt: skip
def test_every_method_comes_near_the_truth(method, likelihood):
    """Within 0.3 nats a row of the log density of the process that made the data."""
    few = {"num_variance_inducing": 16} if method == "dsvi-decoupled" else {}
    found, truth, coverage = log_likelihood_of(TOYS[likelihood], likelihood=likelihood, inference=method, **few)
    assert found > truth - 0.3
    assert 0.9 <= coverage <= 0.995


def test_error_bars_follow_the_noise():
    model = deepwell.fit(*growing_noise(0)[:2], likelihood="heteroscedastic", **BUDGET)
    quiet, loud = model.predict(np.array([[-1.5], [1.5]]), return_std=True)[1]
    assert quiet < 0.25  # the truth is 0.03
    assert loud == pytest.approx(np.exp(-0.5), rel=0.35)


def test_degrees_of_freedom_are_learned():
    """Noise with 2.5 degrees of freedom, and normal noise, told apart."""

    def degrees(model):
        return float(model.posterior.model.likelihood.degrees[0])

    heavy = deepwell.fit(*heavy_tails(0)[:2], likelihood="student-t", **BUDGET)
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, 300)
    light = deepwell.fit(x[:, None], np.sin(2.0 * x) + 0.1 * rng.standard_normal(300), likelihood="student-t", **BUDGET)
    assert degrees(heavy) < 4.5 < degrees(light)


@pytest.mark.parametrize("likelihood", ["student-t", "heteroscedastic", "poisson"])
def test_files_keep_the_likelihood(likelihood, tmp_path):
    X, y, _ = TOYS[likelihood](0)
    tiny = {"preset": "quick", "burn_in": 20, "num_samples": 3, "spacing": 1, "num_inducing": 8}
    model = deepwell.fit(X, y, likelihood=likelihood, **tiny)
    model.save(tmp_path / "model.deepwell")
    again = deepwell.load(tmp_path / "model.deepwell")
    np.testing.assert_array_equal(again.predict_dist(X).log_prob(y), model.predict_dist(X).log_prob(y))
    assert again.settings.likelihood == likelihood


def test_several_counts_at_once():
    X, y, _ = counts(0)
    model = deepwell.fit(X, np.column_stack([y, 3 * y]), likelihood="poisson", **{**BUDGET, "burn_in": 300})
    prediction = model.predict_dist(X)
    assert prediction.mean.shape == prediction.std.shape == (300, 2)
    assert prediction.log_prob(np.column_stack([y, 3 * y])).shape == (300,)
    np.testing.assert_allclose(prediction.mean.mean(0), [y.mean(), 3 * y.mean()], rtol=0.15)


def test_no_counts_no_fit():
    for bad, message in ((-1.0, "holds -1 in row 2"), (0.5, "holds 0.5 in row 2")):
        with pytest.raises(InputError, match=message):
            deepwell.fit(np.zeros((4, 1)), [1.0, 2.0, bad, 0.0], likelihood="poisson")


def a_count_mixture(dispersion):
    rng = np.random.default_rng(0)
    rates = rng.gamma(2.0, 3.0, (20, 3, 1, 4))
    return CountMixture(rates, np.full((20, 3, 1), dispersion), np.array([0.1, 0.4, 0.4, 0.1]), True)


@pytest.mark.parametrize("dispersion", [0.0, 0.2])
def test_mixtures_of_counts_against_scipy(dispersion):
    m = a_count_mixture(dispersion)
    support = np.arange(400)
    weights = np.tile(m.node_weights / 20, 20)
    for row in range(3):
        rates = m.rates[:, row, 0].reshape(-1)[:, None]
        law = stats.poisson(rates) if dispersion == 0.0 else stats.nbinom(1 / dispersion, 1 / (1 + dispersion * rates))
        mass = weights @ law.pmf(support)
        below = np.cumsum(mass)
        one = CountMixture(m.rates[:, [row]], m.dispersion[:, [row]], m.node_weights, True)
        assert np.exp(one.log_prob([7.0]))[0] == pytest.approx(mass[7])
        assert one.log_prob([7.5])[0] == one.log_prob([-1.0])[0] == -np.inf
        assert one.cdf([7.0])[0] == pytest.approx(below[7])
        assert one.mean[0] == pytest.approx(mass @ support)
        assert one.var[0] == pytest.approx(mass @ support**2 - (mass @ support) ** 2)
        assert one.quantile(0.9)[0] == np.argmax(below >= 0.9)
        assert one.crps([7.0])[0] == pytest.approx(np.sum((below - (support >= 7)) ** 2), rel=0.05)
    draws = m.sample(20_000)
    np.testing.assert_allclose(draws.mean(0), m.mean, rtol=0.03)
    np.testing.assert_allclose(draws.std(0), m.std, rtol=0.05)


@pytest.mark.parametrize(("mean_count", "variance"), [(3.0, 0.5), (1e3, 0.09), (1e5, 0.01), (1e6, 0.01)])
def test_large_counts_have_no_gaps_between_the_nodes(mean_count, variance):
    """One sample whose log rate is N(log mean_count, variance), against dense integration over the log rate."""
    import jax
    import jax.numpy as jnp

    from deepwell.model.likelihoods import Poisson

    with jax.enable_x64(True):
        parts = Poisson(jnp.full((1,), np.log(mean_count))).marginal(jnp.zeros((1, 1)), jnp.full((1, 1), variance))
    weights = np.exp(np.asarray(parts.log_weights))[0, 0]
    one = CountMixture(np.asarray(parts.rates)[None], np.asarray(parts.dispersion)[None], weights, True)
    f = np.linspace(-8, 8, 200_001)
    density = stats.norm.pdf(f) / np.sum(stats.norm.pdf(f))
    rate = mean_count * np.exp(np.sqrt(variance) * f)
    for z in (-1.5, 0.0, 0.3, 2.0):
        y = np.floor(mean_count * np.exp(np.sqrt(variance) * z))
        exact = np.log(np.sum(density * stats.poisson.pmf(y, rate)))
        assert one.log_prob([y])[0] == pytest.approx(exact, abs=0.03)
        assert one.cdf([y])[0] == pytest.approx(np.sum(density * stats.poisson.cdf(y, rate)), abs=0.003)


def student_mixture(samples=30, degrees=4.0):
    """Student's noise of scale 0.5 around samples of a function known to 0.2, from the likelihood itself."""
    import jax
    import jax.numpy as jnp

    from deepwell.model.likelihoods import StudentT

    means = np.random.default_rng(0).standard_normal((samples, 1, 1))
    with jax.enable_x64(True):
        parts = StudentT(jnp.full((1,), np.log(0.25)), jnp.full((1,), np.log(degrees - 2.0)), 0.0).marginal(
            jnp.zeros((1, 1)), jnp.full((1, 1), 0.04)
        )
    noise, weights = (np.asarray(x)[None] for x in (parts.noise, np.exp(parts.log_weights)))
    return Mixture(means, np.full((samples, 1, 1), 0.04), noise, Scaling(np.zeros(1), np.ones(1)), True, weights)


def test_mixtures_with_noise_of_several_widths_against_monte_carlo():
    m = student_mixture()
    rng = np.random.default_rng(1)
    which = rng.integers(30, size=400_000)
    draws = m.means[which, 0, 0] + 0.2 * rng.standard_normal(which.size) + 0.5 * rng.standard_t(4.0, which.size)
    assert m.cdf([1.0])[0] == pytest.approx(np.mean(draws <= 1.0), abs=0.003)
    for q in (0.05, 0.5, 0.99):
        assert m.cdf(m.quantile(q))[0] == pytest.approx(q, abs=1e-9)
        assert np.mean(draws <= m.quantile(q)[0]) == pytest.approx(q, abs=0.003)
    other = rng.permutation(draws)
    energy = np.mean(np.abs(draws - 1.5)) - 0.5 * np.mean(np.abs(draws - other))
    assert m.crps([1.5])[0] == pytest.approx(energy, rel=0.01)
    assert m.std[0] == pytest.approx(np.sqrt(np.var(m.means) + 0.04 + 0.25 * 2.0), rel=1e-3)
    ours = m.sample(100_000)[:, 0]
    np.testing.assert_allclose(np.quantile(ours, [0.01, 0.3, 0.9]), np.quantile(draws, [0.01, 0.3, 0.9]), atol=0.05)
    density = np.exp([m.log_prob([y])[0] for y in np.linspace(-40, 40, 4001)])
    assert np.sum(density) * 0.02 == pytest.approx(1.0, abs=1e-4)


def test_three_ways_to_the_mean_distance_of_two_draws_agree(monkeypatch):
    from deepwell.predict import normal_mixtures

    rng = np.random.default_rng(0)
    widths = np.geomspace(0.003, 3.0, 40)[:, None, None]  # of the components beside the spread of their means
    means, variances = rng.standard_normal((40, 2, 300)), widths**2 * rng.uniform(0.3, 3.0, (40, 2, 300))
    weights = rng.dirichlet(np.ones(300), (40, 2))
    pairs = normal_mixtures._distance_by_pairs(means, variances, weights)
    wide = slice(20, None)  # the grid is for noise of several widths, none of them narrow
    grid = normal_mixtures._distance_by_grid(means[wide], variances[wide], weights[wide])
    np.testing.assert_allclose(grid, pairs[wide], rtol=1e-4)
    taken = []
    by_steps = normal_mixtures._distance_by_steps
    monkeypatch.setattr(normal_mixtures, "_distance_by_steps", lambda *a: (taken.append(len(a[0])), by_steps(*a))[1])
    np.testing.assert_allclose(normal_mixtures._distance(means, variances, weights), pairs, rtol=1e-9)
    assert 40 < sum(taken) < 80  # wide components by steps, narrow ones by pairs
    some = [x.copy() for x in (means, variances)]
    some[0][0, 0, 0], some[1][1, 1, 7], some[1][2, 0] = np.nan, np.nan, 0.0  # unknown, unknown, without any width
    found = normal_mixtures._distance(*some, weights)
    assert np.isnan(found[0, 0])
    assert np.isnan(found[1, 1])
    gaps = np.abs(means[2, 0][:, None] - means[2, 0])
    assert found[2, 0] == pytest.approx(weights[2, 0] @ gaps @ weights[2, 0])
    np.testing.assert_allclose(found[3:], pairs[3:], rtol=1e-9)
    monkeypatch.setattr(normal_mixtures, "STEPS_A_STD", 0.5)  # a third of the steps are too few
    assert not np.allclose(normal_mixtures._distance(means, variances, weights), pairs, rtol=1e-7, atol=0.0)
