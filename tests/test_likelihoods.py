"""Every answer of every likelihood against brute force: dense numerical integration, Monte Carlo, scipy.stats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from deepwell.model.likelihoods import (
    Gaussian,
    HeteroscedasticGaussian,
    LogitBernoulli,
    Poisson,
    ProbitBernoulli,
    RobustMax,
    Softmax,
    StudentT,
)

GRID = np.linspace(-9.0, 9.0, 4001)
WEIGHTS = stats.norm.pdf(GRID) / np.sum(stats.norm.pdf(GRID))
few = settings(max_examples=12, deadline=None)
moments = st.tuples(st.floats(-3.0, 3.0), st.floats(0.01, 4.0))


def full(value):
    return jnp.full((1,), value, float)


def column(value):
    return jnp.asarray([[value]], float)


ONE_LATENT = {
    "gaussian": (lambda: Gaussian(full(np.log(0.3))), lambda f, y: stats.norm.logpdf(y, f, np.sqrt(0.3 + 1e-6)), 0.7),
    "student-t": (
        lambda: StudentT(full(np.log(0.3)), full(np.log(2.5))),
        lambda f, y: stats.t.logpdf(y, 4.5, f, np.sqrt(0.3 + 1e-6)),
        0.7,
    ),
    "poisson": (
        lambda: Poisson(full(np.log(2.0))),
        lambda f, y: stats.poisson.logpmf(y, 2.0 * np.exp(f)),
        3.0,
    ),
    "probit": (ProbitBernoulli, lambda f, y: stats.norm.logcdf((2 * y - 1) * f), 1.0),
    "logit": (LogitBernoulli, lambda f, y: special.log_expit((2 * y - 1) * f), 0.0),
}
# largest error of (log E p, E log p) for |mean| <= 3 and variance <= 4, in float64
STATED = {
    "gaussian": (1e-9, 1e-9), "student-t": (1e-5, 2e-2), "poisson": (1e-4, 1e-8), "probit": (1e-9, 1e-5),
    "logit": (1e-5, 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_LATENT)
@given(where=moments)
@few
def test_one_latent_against_dense_integration_and_scipy(name, where):
    make, log_density, y = ONE_LATENT[name]
    mean, variance = where
    f = mean + np.sqrt(variance) * GRID
    log_p = log_density(f, y)
    predictive, expected = special.logsumexp(log_p, b=WEIGHTS), np.sum(WEIGHTS * log_p)
    with jax.enable_x64(True):
        likelihood = make()
        m, v, target = column(mean), column(variance), column(y)
        assert float(likelihood.log_prob(m, target)[0]) == pytest.approx(log_density(mean, y), abs=1e-9)
        assert float(likelihood.predict_log_density(m, v, target)[0]) == pytest.approx(
            predictive, abs=STATED[name][0] * max(1.0, abs(predictive))
        )
        assert float(likelihood.variational_expectations(m, v, target)[0]) == pytest.approx(
            expected, abs=STATED[name][1] * max(1.0, abs(expected))
        )


@pytest.mark.parametrize(
    ("count", "variance"), [(0.0, 2.0), (5.0, 0.1), (60.0, 1e-4), (400.0, 0.1), (400.0, 2.0), (1e5, 2.0)]
)
def test_counts_large_and_small(count, variance):
    """A count of 100,000 is much sharper than q(f): the nodes go where the product is."""
    f = np.linspace(-14.0, 14.0, 4_000_001) * np.sqrt(variance) + 0.3
    log_p = stats.poisson.logpmf(count, 50.0 * np.exp(f)) + stats.norm.logpdf(f, 0.3, np.sqrt(variance))
    exact = special.logsumexp(log_p) + np.log(f[1] - f[0])
    with jax.enable_x64(True):
        ours = Poisson(full(np.log(50.0))).predict_log_density(column(0.3), column(variance), column(count))
    assert float(ours[0]) == pytest.approx(exact, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", ONE_LATENT)
def test_moments_against_dense_integration(name):
    make, _, _ = ONE_LATENT[name]
    mean, variance = 0.4, 0.5
    f = mean + np.sqrt(variance) * GRID
    first, noise = {
        "gaussian": (f, np.full_like(f, 0.3)),
        "student-t": (f, np.full_like(f, 0.3 * 4.5 / 2.5)),
        "poisson": (2.0 * np.exp(f), 2.0 * np.exp(f)),
        "probit": (stats.norm.cdf(f), stats.norm.cdf(f) * stats.norm.cdf(-f)),
        "logit": (special.expit(f), special.expit(f) * special.expit(-f)),
    }[name]
    exact_mean = np.sum(WEIGHTS * first)
    exact_var = np.sum(WEIGHTS * (noise + first**2)) - exact_mean**2
    with jax.enable_x64(True):
        m, v = make().predict_mean_and_var(column(mean), column(variance))
    assert float(m[0, -1]) == pytest.approx(exact_mean, rel=1e-5)
    assert float(v[0, -1]) == pytest.approx(exact_var, rel=1e-3)


@given(where=moments, log_noise=moments)
@few
def test_changing_noise_against_dense_integration(where, log_noise):
    """f is integrated in closed form by us, by a grid here; g on a grid of its own."""
    (mean, variance), (g_mean, g_variance) = where, (log_noise[0], log_noise[1] / 4.0)
    y = 0.7
    noise = 1e-6 + 0.3 * np.exp(g_mean + np.sqrt(g_variance) * GRID)
    density = stats.norm.pdf(y, mean, np.sqrt(variance + noise))
    expected = np.sum(WEIGHTS * (stats.norm.logpdf(y, mean, np.sqrt(noise)) - 0.5 * variance / noise))
    with jax.enable_x64(True):
        likelihood = HeteroscedasticGaussian(full(np.log(0.3)))
        m, v = jnp.asarray([[mean, g_mean]]), jnp.asarray([[variance, g_variance]])
        ours = likelihood.predict_log_density(m, v, column(y))
        bound = likelihood.variational_expectations(m, v, column(y))
        at_mean = likelihood.log_prob(m, column(y))
    assert float(ours[0]) == pytest.approx(np.log(np.sum(WEIGHTS * density)), abs=1e-4)
    assert float(bound[0]) == pytest.approx(expected, rel=1e-4)
    assert float(at_mean[0]) == pytest.approx(
        stats.norm.logpdf(y, mean, np.sqrt(1e-6 + 0.3 * np.exp(g_mean))), abs=1e-9
    )


def largest_by_grid(mean, std):
    found = []
    for c in range(len(mean)):
        f = mean[c] + std[c] * GRID
        others = [stats.norm.cdf((f - mean[j]) / std[j]) for j in range(len(mean)) if j != c]
        found.append(np.sum(WEIGHTS * np.prod(others, axis=0)))
    return np.asarray(found)


class_moments = st.integers(2, 10).flatmap(
    lambda c: st.tuples(
        st.lists(st.floats(-4.0, 4.0), min_size=c, max_size=c), st.lists(st.floats(0.0, 1.0), min_size=c, max_size=c)
    )
)


@pytest.mark.parametrize(("spread", "stated"), [(1.0, 2e-5), (2.0, 2e-3), (4.0, 2e-2)])
@given(where=class_moments)
@few
def test_robust_max_against_dense_integration(spread, stated, where):
    """Latents that share their variance, as those of sghmc do, and standard deviations up to 2 and 4 times others."""
    mean = np.asarray(where[0])
    std = 0.8 * spread ** np.asarray(where[1])
    exact = largest_by_grid(mean, std)
    np.testing.assert_allclose(np.sum(exact), 1.0, atol=1e-6)
    p = 1e-3 / (len(mean) - 1) * (1 - exact) + (1 - 1e-3) * exact
    with jax.enable_x64(True):
        likelihood = RobustMax(len(mean))
        m, v = jnp.asarray(mean)[None], jnp.asarray(std**2)[None]
        ours = np.exp(likelihood.marginal(m, v).log_probabilities[0])
        y = column(float(np.argmax(mean)))
        density = float(likelihood.predict_log_density(m, v, y)[0])
        bound = float(likelihood.variational_expectations(m, v, y)[0])
    np.testing.assert_allclose(ours, p, atol=stated)
    best = exact[np.argmax(mean)]
    assert density == pytest.approx(np.log(p[np.argmax(mean)]), abs=10 * stated)
    assert bound == pytest.approx(
        best * np.log(1 - 1e-3) + (1 - best) * np.log(1e-3 / (len(mean) - 1)), abs=10 * stated
    )


@given(where=class_moments)
@few
def test_softmax_against_monte_carlo(where):
    """64 fixed nodes: within 0.02 of the probabilities, standard deviations up to 1.6."""
    mean, std = np.asarray(where[0]), 0.8 * 2.0 ** np.asarray(where[1])
    f = mean + std * np.random.default_rng(0).standard_normal((40_000, len(mean)))
    log_p = special.log_softmax(f, axis=-1)
    with jax.enable_x64(True):
        likelihood = Softmax(len(mean))
        m, v = jnp.asarray(mean)[None], jnp.asarray(std**2)[None]
        ours = np.exp(likelihood.marginal(m, v).log_probabilities[0])
        bound = [float(likelihood.variational_expectations(m, v, column(float(c)))[0]) for c in range(len(mean))]
        single = likelihood.log_prob(m, column(0.0))
    np.testing.assert_allclose(ours, np.exp(log_p).mean(0), atol=0.025)
    np.testing.assert_allclose(np.sum(ours), 1.0, atol=1e-9)
    np.testing.assert_allclose(bound, log_p.mean(0), rtol=0.03, atol=0.02)
    assert float(single[0]) == pytest.approx(special.log_softmax(mean)[0])


def test_robust_max_needs_the_largest_latent():
    f = jnp.asarray([[0.1, 0.3, 0.2], [5.0, 3.0, 4.0]])
    found = RobustMax(3).log_prob(f, jnp.asarray([[1.0], [2.0]]))
    np.testing.assert_allclose(found, np.log([1 - 1e-3, 5e-4]), rtol=1e-6)


EVERY = {
    **{name: (make, 1, y) for name, (make, _, y) in ONE_LATENT.items()},
    "heteroscedastic": (lambda: HeteroscedasticGaussian(full(np.log(0.3))), 2, 0.7),
    "robust-max": (lambda: RobustMax(4), 4, 2.0),
    "softmax": (lambda: Softmax(4), 4, 2.0),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("x64", [False, True])
def test_single_precision_agrees_with_double(name, x64):
    make, latents, y = EVERY[name]
    mean, variance = np.linspace(-1.0, 1.5, latents), np.linspace(0.4, 1.0, latents)

    def answers():
        likelihood = make()
        m, v, target = jnp.asarray(mean, float)[None], jnp.asarray(variance, float)[None], column(y)
        return np.asarray([
            likelihood.predict_log_density(m, v, target)[0], likelihood.variational_expectations(m, v, target)[0]
        ])  # fmt: skip

    with jax.enable_x64(True):
        exact = answers()
    with jax.enable_x64(x64):
        np.testing.assert_allclose(answers(), exact, rtol=1e-12 if x64 else 2e-5)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("far", [0.0, 1e2, 1e4, 1e8])
def test_values_and_gradients_stay_finite_at_extreme_latents(name, far):
    make, latents, y = EVERY[name]
    likelihood = make()
    target = jnp.asarray([[y]] * 4, float)
    signs = np.asarray([[1.0], [-1.0], [1.0], [-1.0]])
    mean = jnp.asarray(far * signs * np.linspace(1.0, 0.5, latents), float)
    variance = jnp.asarray(np.array([[1e-8], [1.0], [far**2 + 1e-8], [1e-8]]) * np.ones(latents), float)

    for ask in ("predict_log_density", "variational_expectations"):

        def total(m, v, likelihood, ask=ask):
            return jnp.sum(getattr(likelihood, ask)(m, v, target))

        value, gradients = jax.value_and_grad(total, argnums=(0, 1, 2))(mean, variance, likelihood)
        assert np.isfinite(value), ask
        assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(gradients)), ask
    assert np.isfinite(jnp.sum(likelihood.log_prob(mean, target)))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(likelihood.marginal(mean, variance)))


@pytest.mark.parametrize("degrees", [2.2, 4.0, 30.0, 300.0])
def test_student_noise_as_a_mixture_of_normals(degrees):
    """The mixture has Student's density out to 10 scales, and outliers of up to 1,000 cost what they should, nearly."""
    y = np.concatenate([np.linspace(-10.0, 10.0, 201), [50.0, 200.0, 1000.0]])[:, None]
    with jax.enable_x64(True):
        likelihood = StudentT(full(0.0), full(np.log(degrees - 2.0)))
        zero = jnp.zeros_like(jnp.asarray(y))
        ours = likelihood.predict_log_density(zero, zero, jnp.asarray(y))
    exact = stats.t.logpdf(y[:, 0], degrees, 0.0, np.sqrt(1.0 + 1e-6))
    np.testing.assert_allclose(ours[:201], exact[:201], atol=2e-3)
    np.testing.assert_allclose(ours[201:], exact[201:], rtol=0.05)


def test_counts_of_a_million_in_single_precision():
    y = jnp.asarray([[1e6]], jnp.float32)
    ours = Poisson(jnp.full((1,), np.log(1e6), jnp.float32)).log_prob(jnp.asarray([[1e-3]], jnp.float32), y)
    assert float(ours[0]) == pytest.approx(stats.poisson.logpmf(1e6, 1e6 * np.exp(1e-3)), abs=0.1)
