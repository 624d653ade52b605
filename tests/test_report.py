"""Calibration, conformal intervals, relevance, hidden layers and the report that shows them."""

import re

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import deepwell
from deepwell import InputError
from deepwell.cli import app
from deepwell.data.scaling import Scaling
from deepwell.interfaces.report import Held, write_report
from deepwell.predict.calibration import calibration, reliability
from deepwell.predict.classes import ClassProbabilities
from deepwell.predict.conformal import conformal_interval, conformity
from deepwell.predict.diagnostics import diagnose, find_modes
from deepwell.predict.mixture import Mixture

QUICK = {"preset": "quick", "num_inducing": 16, "burn_in": 400}
RUN = CliRunner()


def normal(mean, std):
    """Predictions N(mean_i, std^2)."""
    means = np.asarray(mean, float)[None, :, None]
    return Mixture(means, np.zeros_like(means), np.full((1, 1), std**2), Scaling(np.zeros(1), np.ones(1)), True)


@pytest.mark.parametrize(("stated", "verdict"), [(1.0, "honest"), (0.6, "too narrow"), (1.6, "too wide")])
def test_calibration_of_errors_with_standard_deviation_one(stated, verdict):
    y = np.random.default_rng(0).standard_normal(2_000)
    found = calibration(normal(np.zeros(2_000), stated), y)
    assert verdict in str(found)
    expected = 2.0 * stats.norm.cdf(stated * stats.norm.ppf(0.95)) - 1.0
    assert found.coverage[90] == pytest.approx(expected, abs=0.02)
    assert found.sharpness == pytest.approx(2.0 * stated * stats.norm.ppf(0.95))
    uniform = stats.kstest(found.pit, "uniform").pvalue
    assert (uniform > 1e-3) == (stated == 1.0)


def test_reliability_of_known_confidence():
    p = np.repeat([[0.85, 0.15], [0.55, 0.45]], 100, axis=0)
    y = np.repeat([0, 1, 0, 1], [85, 15, 40, 60])
    found = reliability(ClassProbabilities(p, np.zeros(200), (0, 1)), y)
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


def test_too_few_calibration_rows_are_refused():
    scores = np.ones((10, 1))
    with pytest.raises(InputError, match=r"10 calibration rows cannot vouch for a level of 0\.95: at least 19"):
        conformal_interval(normal(np.zeros(1), 1.0), scores, 0.95)


@pytest.fixture(scope="module")
def table():
    """y depends on a strongly, on b weakly, on c not at all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (260, 3)), columns=["a", "b", "c"])
    return X, np.sin(1.5 * X["a"].to_numpy()) + 0.3 * X["b"].to_numpy() + 0.1 * rng.standard_normal(260)


@pytest.fixture(scope="module")
def model(table):
    X, y = table
    return deepwell.fit(X[:200], y[:200], num_chains=2, calibration=0.25, **QUICK)


def test_rows_kept_out_of_the_fit_calibrate_its_intervals(model, table, tmp_path):
    X, y = table
    assert model.num_rows == 150
    assert model.conformity.shape == (50, 1)
    lower, upper = model.predict_interval(X[200:], 0.9, conformal=True)
    assert 0.75 <= np.mean((lower <= y[200:]) & (y[200:] <= upper)) <= 1.0
    own = model.predict_interval(X[200:], 0.9)
    np.testing.assert_array_equal(own, model.predict_dist(X[200:]).interval(0.9))
    model.save(tmp_path / "m.deepwell")
    again = deepwell.load(tmp_path / "m.deepwell")
    np.testing.assert_array_equal(again.predict_interval(X[200:], 0.9, conformal=True), (lower, upper))


def test_conformal_intervals_without_calibration_rows_are_refused(table):
    X, y = table
    plain = deepwell.fit(X[:60], y[:60], **{**QUICK, "burn_in": 10})
    with pytest.raises(InputError, match="need calibration rows"):
        plain.predict_interval(X, conformal=True)
    with pytest.raises(InputError, match="calibration=2 must be a share"):
        deepwell.fit(X, y, calibration=2)
    with pytest.raises(InputError, match="y is a class"):
        deepwell.fit(X, np.where(y > 0, "a", "b"), calibration=0.2)


def test_log_likelihoods_of_samples_average_to_that_of_the_prediction(model, table):
    X, y = table
    per_sample = model.log_likelihoods(X[200:], y[200:])
    np.testing.assert_allclose(
        np.log(np.mean(np.exp(per_sample), 0)), model.predict_dist(X[200:]).log_prob(y[200:]), atol=1e-4
    )


def test_relevance_is_the_slope_of_the_mean(model, table):
    """Against finite differences of the predictions of every sample."""
    X, _ = table
    inputs = X[:100].to_numpy()
    found = model.relevance(inputs)
    step = 1e-2
    for column in range(3):
        moved = [inputs.copy(), inputs.copy()]
        for sign, rows in zip((1.0, -1.0), moved, strict=True):
            rows[:, column] += sign * step * model.x_scaling.scale[column]
        ahead, behind = (model.function_values(rows) for rows in moved)
        slopes = np.sqrt(np.mean(((ahead - behind) / (2.0 * step)) ** 2, (1, 2)))
        assert found.mean[column] == pytest.approx(np.mean(slopes), rel=0.03, abs=0.01)
    assert found.mean[0] > found.mean[1] > found.mean[2]


def test_hidden_layers_feed_the_last_one(model, table):
    """The last layer applied to the hidden outputs, plus their noise, gives back the function values."""
    X, _ = table
    (hidden,) = model.hidden_layers(X[:5])
    samples, _, width = hidden.shape
    assert (samples, width) == (np.prod(model.posterior.draws), 3)
    deep_gp = model.posterior.model
    factors = deep_gp.factors()
    first = deep_gp.layers[0].project(factors[0], jnp.asarray(model.x_scaling.standardise(X[:5].to_numpy()), float))
    noise = np.asarray(model.posterior.noise[0]).reshape(samples, width)
    f = hidden[0] + np.sqrt(np.asarray(first.variance))[:, None] * noise[0]
    last = deep_gp.layers[1].project(factors[1], jnp.asarray(f, float))
    v = np.asarray(model.posterior.samples[1]).reshape(samples, -1, 1)
    np.testing.assert_allclose(np.asarray(last.features) @ v[0], model.function_values(X[:5])[0], atol=2e-3)


def test_chains_in_different_modes_are_named():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 50, 30))
    assert find_modes(values) == ((0, 1, 2, 3),)
    values[1] += 10.0
    assert find_modes(values) == ((0, 2, 3), (1,))
    assert "3 of 4 chains agree; chain 2 is in another mode" in str(diagnose(values))
    values[2] += 10.0
    assert "the chains are in 2 modes: chains 1, 4; chains 2, 3" in str(diagnose(values))


def test_arviz_reads_chains_hyperparameters_and_leaves_one_out(table):
    arviz = pytest.importorskip("arviz")
    X, y = table
    fitted = deepwell.fit(X[:100], y[:100], num_chains=2, inference="sghmc-bayes", **{**QUICK, "num_samples": 20})
    data = fitted.to_arviz(X[:100], y[:100])
    assert data["posterior"]["f"].shape == (2, 20, 100, 1)
    assert data["posterior"]["likelihood.log_noise_variance"].shape == (2, 20, 1)
    assert np.isfinite(float(arviz.loo(data).elpd if hasattr(arviz.loo(data), "elpd") else arviz.loo(data).elpd_loo))
    verdict = fitted.diagnose(X[:100])
    assert verdict.effective.bulk.shape == (100,)
    assert "independent ones" in str(verdict)


def page_of(path):
    """The text of a page, after the checks that every page must pass: nothing is fetched, every picture has a name."""
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    links = re.findall(r'(?:src|href)="?\'?([^"\'> ]+)', text)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in text
    assert "<script" not in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    assert text.count("<figure") == text.count("aria-label=")
    return text


def test_a_report_with_held_out_rows_and_baselines(model, table, tmp_path):
    X, y = table
    held = Held(X[200:], y[200:], (X[:200].to_numpy(), y[:200]))
    write_report(model, tmp_path / "r.html", held, "m.deepwell")
    text = page_of(tmp_path / "r.html")
    for heading in ("Scores on rows not seen", "Can the error bars be trusted", "Did it converge", "What matters",
                    "Along one input", "Hidden layers", "Settings and versions", "Load it and predict"):  # fmt: skip
        assert heading in text
    for baseline in ("mean", "linear regression", "random forest", "one-layer GP"):
        assert baseline in text
    assert "intervals hold" in text
    assert text.count("<svg") == 6


def test_reports_of_classes_and_of_a_model_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a<b", "c"])
    kind = np.where(X["a<b"] > 0, "up & away", "down")
    fitted = deepwell.fit(X[:60], kind[:60], **{**QUICK, "burn_in": 100})
    write_report(fitted, tmp_path / "r.html", Held(X[60:], kind[60:]))
    text = page_of(tmp_path / "r.html")
    assert "calibration error" in text
    assert "up &amp; away" in text
    assert "a&lt;b" in text
    write_report(fitted, tmp_path / "alone.html")
    assert "Scores" not in page_of(tmp_path / "alone.html")


def test_the_command_line_writes_reports(tmp_path, table):
    X, y = table
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    model, report = str(tmp_path / "m.deepwell"), tmp_path / "r.html"
    options = ["--preset", "quick", "--set", "burn_in=100", "--set", "num_inducing=8", "--quiet"]
    result = RUN.invoke(app, ["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", model, "--report", str(report),
                              *options])  # fmt: skip
    assert result.exit_code == 0, result.output
    assert deepwell.load(model).num_rows == 208
    assert "52 kept out" in page_of(report)
    alone = tmp_path / "alone.html"
    assert RUN.invoke(app, ["report", model, "--out", str(alone)]).exit_code == 0
    page_of(alone)
    with_data = ["report", model, "--data", str(tmp_path / "t.csv"), "--out", str(alone)]
    assert RUN.invoke(app, with_data).exit_code == 2  # it exists
    assert RUN.invoke(app, [*with_data, "--force"]).exit_code == 0
    assert "Can the error bars be trusted" in page_of(alone)
