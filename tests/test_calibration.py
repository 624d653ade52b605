"""Calibration, reliability, conformal intervals and modes of chains, on predictions whose truth is known."""

import numpy as np
import pytest
from scipy import stats

import deepwell
from deepwell import InputError
from deepwell.data.scaling import Scaling
from deepwell.fits.prepare import STREAM
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.conformal import conformal_interval, conformity
from deepwell.predict.count_mixture import CountMixture
from deepwell.predict.diagnostics import diagnose, find_modes
from deepwell.predict.mixture import Mixture


def normal(mean, std):
    """Predictions N(mean_i, std^2)."""
    means = np.asarray(mean, float)[None, :, None]
    return Mixture(means, np.zeros_like(means), np.full((1, 1), std**2), Scaling(np.zeros(1), np.ones(1)), True)


@pytest.mark.parametrize(("stated", "verdict"), [(1.0, "honest"), (0.6, "too narrow"), (1.6, "too wide")])
def test_calibration_of_errors_with_standard_deviation_one(stated, verdict):
    y = np.random.default_rng(0).standard_normal(2_000)
    found = normal(np.zeros(2_000), stated).calibration(y)
    assert verdict in str(found)
    expected = 2.0 * stats.norm.cdf(stated * stats.norm.ppf(0.95)) - 1.0
    assert found.coverage[90] == pytest.approx(expected, abs=0.02)
    assert found.sharpness == pytest.approx(2.0 * stated * stats.norm.ppf(0.95))
    uniform = stats.kstest(found.pit, "uniform").pvalue
    assert (uniform > 1e-3) == (stated == 1.0)


def test_reliability_of_known_confidence():
    p = np.repeat([[0.85, 0.15], [0.55, 0.45]], 100, axis=0)
    y = np.repeat([0, 1, 0, 1], [85, 15, 40, 60])
    found = ClassProbabilities(p, np.zeros(200), (0, 1)).calibration(y)
    np.testing.assert_allclose(found.confidence, [0.55, 0.85])
    np.testing.assert_allclose(found.accuracy, [0.4, 0.85])
    np.testing.assert_array_equal(found.rows, [100, 100])


@pytest.mark.parametrize("stated", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_conformal_intervals_cover_as_often_as_they_say_whatever_the_model(stated, level):
    """99 calibration rows, 2,000 repetitions: coverage at least the level, and at most 1 / 100 above it."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2_000):
        y = rng.standard_t(3, 100)
        scores = conformity(normal(np.zeros(99), stated), y[:99])
        lower, upper = conformal_interval(normal(np.zeros(1), stated), scores, level)
        inside.append(lower[0] <= y[99] <= upper[0])
    noise = 3.0 * np.sqrt(level * (1.0 - level) / 2_000)
    assert level - noise <= np.mean(inside) <= level + 0.01 + noise


def poisson(rate, rows):
    """Counts from Poisson(rate) in each row."""
    return CountMixture(np.full((1, rows, 1, 1), rate), np.zeros((1, rows, 1)), np.ones(1), True)


def test_the_pit_of_counts_is_the_middle_of_the_jump():
    """E (F(Y) + F(Y - 1)) / 2 = 1/2 whatever the law of counts, and numbers have no jump."""
    counts = np.arange(60.0)
    pit = poisson(3.0, 60).pit(counts)
    np.testing.assert_allclose(pit, stats.poisson(3.0).cdf(counts) - 0.5 * stats.poisson(3.0).pmf(counts), atol=1e-12)
    assert stats.poisson(3.0).pmf(counts) @ pit == pytest.approx(0.5)
    np.testing.assert_array_equal(normal(np.zeros(60), 1.0).pit(counts), normal(np.zeros(60), 1.0).cdf(counts))


def test_conformal_intervals_of_rare_counts_have_a_width_to_stretch():
    """At a rate of 0.01 the model's own 90 % interval is 0 to 0; one count away is then a score of 2."""
    prediction = poisson(0.01, 3)
    np.testing.assert_array_equal(prediction.interval(0.9), np.zeros((2, 3)))
    np.testing.assert_array_equal(conformity(prediction, np.array([0.0, 1.0, 3.0]))[:, 0], [0.0, 2.0, 6.0])


def test_too_few_calibration_rows_are_refused():
    scores = np.ones((10, 1))
    with pytest.raises(InputError, match=r"10 calibration rows are too few for a level of 0\.95: it needs at least 19"):
        conformal_interval(normal(np.zeros(1), 1.0), scores, 0.95)


SHORT = {"preset": "quick", "burn_in": 20, "num_samples": 4, "spacing": 2, "num_inducing": 4}


def test_a_share_of_the_rows_calibrates_and_the_others_are_fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    model = deepwell.fit(X, y, calibration=0.25, seed=3, **SHORT)
    held = np.random.default_rng([STREAM, 3, 1]).choice(40, 10, replace=False)
    rest = np.setdiff1d(np.arange(40), held)
    apart = deepwell.fit(X[rest], y[rest], seed=3, **SHORT).calibrated(X[np.sort(held)], y[np.sort(held)])
    np.testing.assert_array_equal(model.predict(X), apart.predict(X))
    np.testing.assert_array_equal(model.conformity, apart.conformity)


def test_calibration_of_classes_is_refused_however_they_are_told():
    X = np.random.default_rng(0).standard_normal((20, 2))
    y = (X[:, 0] > 0).astype(int)
    said = "calibration needs a numeric target, because it is for intervals; 'y' is a class"
    classifier = deepwell.fit(X, y, classes=[0, 1], **SHORT)
    for target, options in (
        (y, {"classes": [0, 1]}), (y, {"likelihood": "classes"}), (y > 0, {}), (y, {"init": classifier})
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            deepwell.fit(X, target, calibration=0.25, **options, **SHORT)


def test_chains_in_different_modes_are_named():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 50, 30))
    assert find_modes(values) == ((0, 1, 2, 3),)
    values[1] += 10.0
    assert find_modes(values) == ((0, 2, 3), (1,))
    assert "3 of 4 chains agree; chain 2 is in another mode" in str(diagnose(values))
    values[2] += 10.0
    assert "the chains are in 2 modes: chains 1, 4; chains 2, 3" in str(diagnose(values))
