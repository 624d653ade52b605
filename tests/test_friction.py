"""Heat while sampling: the noise of minibatches widens the chain's law, friction and control variates hold it."""

import numpy as np
import pytest

import deepwell
from deepwell.assess.small_problems import features_and_variance, quadratic
from deepwell.fits.presets import make_settings


def heat(batch_size, **settings):
    """Variance of function values under the draws of a fit with theta fixed at depth 1, over that of the exact
    posterior: the median over the rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(1_000)
    model = deepwell.fit(
        X, y, depth=1, num_inducing=20, fixed=["*"], noise_variance=0.1, num_chains=8, burn_in=4_000, num_samples=100,
        spacing=40, batch_size=batch_size, local=False, **settings,
    )  # fmt: skip
    gp = model.posterior.model
    features, _ = features_and_variance(gp, model.x_scaling.standardise(X))
    q = quadratic(gp, model.x_scaling.standardise(X), model.y_scaling.standardise(y[:, None]), "predictive")
    exact = np.sum(features * np.linalg.solve(q.H, features.T).T, 1) / len(X)
    v = np.asarray(model.posterior.samples[0], np.float64).reshape(-1, 20)
    return np.median(np.var(v @ features.T, 0) / exact)


def test_little_friction_is_right_with_all_rows_and_too_hot_with_minibatches():
    """The noise of minibatches enters the momentum whatever the friction is, so its share grows as friction falls."""
    all_rows = heat(1_000)
    hot, cooler = (heat(50, control_variates=False, sampling_friction=friction) for friction in (0.01, 0.05))
    assert all_rows == pytest.approx(1.0, abs=0.06)
    assert hot - 1.0 > 2.0 * (cooler - 1.0) > 0.1


def test_control_variates_take_the_heat_of_minibatches_away():
    """Little friction, with which minibatches alone make the variance several times too large (the test above)."""
    assert heat(50, sampling_friction=0.02) == pytest.approx(1.0, abs=0.2)


def test_friction_while_sampling_is_chosen_by_whether_there_are_minibatches():
    def friction(rows, *preset, **settings):
        return float(make_settings(*preset, **settings).rates(rows).sampling_friction[0])

    assert [friction(n) for n in (1_000, 1_001)] == pytest.approx([0.01, 0.02])
    assert friction(1_001, control_variates=False) == pytest.approx(0.05)
    assert friction(1_001, inference="sghmc-bayes") == pytest.approx(0.05)
    assert friction(100, "paper") == pytest.approx(0.05)
    assert friction(5_000, sampling_friction=0.2) == pytest.approx(0.2)
