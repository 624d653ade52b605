"""What a fitted model tells of itself: calibrated intervals, relevance, slices, hidden layers; and the report."""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from browser import CHROMIUM, faults, look
from matplotlib.figure import Figure
from typer.testing import CliRunner

import deepwell
from deepwell import InputError
from deepwell.assess import baselines
from deepwell.assess.report import HeldOut, write_report
from deepwell.cli.main import app
from deepwell.doors import plots

QUICK = {"preset": "quick", "num_inducing": 16, "burn_in": 400}
RUN = CliRunner()


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


def test_conformal_intervals_without_calibration_rows_are_refused(model, table):
    X, y = table
    plain = dataclasses.replace(model, conformity=None)
    with pytest.raises(InputError, match="need calibration rows"):
        plain.predict_interval(X, conformal=True)
    with pytest.raises(InputError, match="calibration=2 must be a share"):
        deepwell.fit(X, y, calibration=2)
    with pytest.raises(InputError, match=r"numeric target.*'y' is a class"):
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


def test_a_slice_holds_the_other_inputs_at_their_medians(model, table):
    X, _ = table
    found = model.slice_along(X[["c", "b", "a"]], "b")  # a frame is matched by name
    assert (found.name, found.target_names) == ("b", ("y",))
    np.testing.assert_allclose(found.x[[0, -1]], np.quantile(X["b"], [0.01, 0.99]))
    by_hand = np.column_stack([np.full(100, X["a"].median()), found.x, np.full(100, X["c"].median())])
    np.testing.assert_array_equal(found.prediction.mean, model.predict(by_hand))
    axes = Figure().subplots()
    plots.slice_bands(axes, found)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("b", "y")
    outer = axes.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([outer.min(), outer.max()], [
        end(found.prediction.interval(0.95)[i]) for i, end in enumerate((np.min, np.max))
    ])  # fmt: skip
    with pytest.raises(InputError, match="there is no input 'd': choose from a, b, c"):
        model.slice_along(X, "d")


def test_ridge_leaves_one_out_without_refitting(table):
    """The penalty and the error bar of the closed form, against 40 refits for each penalty."""
    X, y = table
    X, y = X.to_numpy()[:40] * [1.0, 100.0, 0.01], y[:40]
    standard = (X - X.mean(0)) / X.std(0)

    def refit(penalty, kept):
        design = np.column_stack([np.ones(len(standard)), standard])
        ridge = np.diag([0.0, *[penalty] * 3])
        return design @ np.linalg.solve(design[kept].T @ design[kept] + ridge, design[kept].T @ y[kept])

    def left_out(penalty):
        return np.mean([(y[i] - refit(penalty, np.arange(40) != i)[i]) ** 2 for i in range(40)])

    penalties = 40 * baselines.PENALTIES
    errors = [left_out(penalty) for penalty in penalties]
    best = int(np.argmin(errors))
    assert 0 < best < len(penalties) - 1
    found = baselines.ridge(X, y)(X)
    np.testing.assert_allclose(found.mean, refit(penalties[best], np.full(40, True)))
    np.testing.assert_allclose(found.std, np.sqrt(errors[best]))


def test_hidden_layers_feed_the_last_one(model, table):
    """The last layer applied to the hidden outputs, plus their noise, gives back the function values."""
    X, _ = table
    (hidden,) = model.hidden_layers(X[:5])
    samples, _, width = hidden.shape
    assert (samples, width) == (np.prod(model.posterior.draws), 3)
    deep_gp = model.posterior.model
    prepared = deep_gp.prepare()
    first = deep_gp.layers[0].project(
        prepared.layers[0], jnp.asarray(model.x_scaling.standardise(X[:5].to_numpy()), float)
    )
    noise = np.asarray(model.posterior.noise[0]).reshape(samples, width)
    f = hidden[0] + np.sqrt(np.asarray(first.variance))[:, None] * noise[0]
    last = deep_gp.layers[1].project(prepared.layers[1], jnp.asarray(f, float))
    v = np.asarray(model.posterior.samples[1]).reshape(samples, -1, 1)
    np.testing.assert_allclose(np.asarray(last.features) @ v[0], model.function_values(X[:5])[0], atol=2e-3)


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
    assert "effective sample size" in str(verdict)


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


@pytest.fixture(scope="module")
def report(model, table, tmp_path_factory):
    X, y = table
    path = tmp_path_factory.mktemp("report") / "r.html"
    write_report(model, path, HeldOut(X[200:], y[200:], (X[:200].to_numpy(), y[:200])), "m.deepwell")
    return path


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_all_of_the_report_wide_and_narrow_and_fetches_nothing(report, dark):
    found, console = look(report, (1280, 400), dark)
    assert [(len(one["figures"]), one["dark"]) for one in found] == [(10, dark)] * 2
    assert faults(found, console) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_catches_what_is_wrong_with_a_page(report, tmp_path):
    wrong = "<img src='http://127.0.0.1:9/x.png'><div style='width:700px'>wide</div><script>nothing()</script>"
    text = report.read_text().replace("</h1>", f"</h1>{wrong}", 1).replace("<figure", "<figure style='display:none'", 1)
    (tmp_path / "r.html").write_text(text)
    said = " ".join(faults(*look(tmp_path / "r.html", [400])))
    for fault in ("console: ", "nothing is not defined", "fetched: http://127.0.0.1:9/x.png", "wide in a window of 400",
                  "not seen at 400: predicted against observed"):  # fmt: skip
        assert fault in said


def test_a_report_with_held_out_rows_and_baselines(report):
    text = page_of(report)
    for heading in ("Scores on held-out rows", "Can the error bars be trusted", "Did it converge",
                    "Which inputs matter", "Predictions along one input", "Hidden layers", "Settings and versions",
                    "Load the model and predict"):  # fmt: skip
        assert heading in text
    for baseline in ("mean", "ridge regression", "random forest", "one-layer GP"):
        assert baseline in text
    assert "intervals hold" in text
    assert text.count("<svg") == 10


def test_reports_of_classes_and_of_a_model_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a<b", "c"])
    kind = np.where(X["a<b"] > 0, "up & away", "down")
    fitted = deepwell.fit(X[:60], kind[:60], **{**QUICK, "burn_in": 100})
    write_report(fitted, tmp_path / "r.html", HeldOut(X[60:], kind[60:]))
    text = page_of(tmp_path / "r.html")
    assert "calibration error" in text
    assert "up &amp; away" in text
    assert "a&lt;b" in text
    assert "Probabilities along one input" in text
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
    assert "52 held out" in page_of(report)
    alone = tmp_path / "alone.html"
    assert RUN.invoke(app, ["report", model, "--out", str(alone)]).exit_code == 0
    page_of(alone)
    with_data = ["report", model, "--data", str(tmp_path / "t.csv"), "--out", str(alone)]
    assert RUN.invoke(app, with_data).exit_code == 2  # it exists
    assert RUN.invoke(app, [*with_data, "--force"]).exit_code == 0
    assert "Can the error bars be trusted" in page_of(alone)
