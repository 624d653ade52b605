"""Does depth help? The verdict on known scores, leave-one-out against refits, and the whole way round."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.signal import lfilter
from typer.testing import CliRunner

import deepwell
from deepwell import InputError
from deepwell.cli.main import app
from deepwell.data.splits import split_rows
from deepwell.predict.arviz import leave_one_out
from deepwell.predict.depth_comparison import DepthComparison

QUICK = {"preset": "quick", "num_inducing": 16, "burn_in": 800}
RUN = CliRunner()


def comparison(means, noise=0.1, rows=400, by="validation", shapes=None):
    """Scores of depths 1, 2, ... whose differences have this standard deviation, exactly, on rows hard and easy."""
    rng = np.random.default_rng(0)
    hard = 3.0 * rng.standard_normal(rows)
    wiggle = stats.zscore(rng.standard_normal((len(means), rows)), axis=1, ddof=1)
    wiggle[int(np.argmax(means))] = 0.0
    scores = np.asarray(means)[:, None] + hard + noise * wiggle
    return DepthComparison(tuple(range(1, len(means) + 1)), scores, by, (1.0,) * len(means), shapes)


def test_rows_that_are_hard_at_every_depth_do_not_blur_the_difference():
    found = comparison([-1.0, -0.8])
    np.testing.assert_allclose(found.difference, [-0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.standard_error, [0.1 / 20.0, 0.0], atol=1e-12)
    assert found.best == 2
    assert found.rows()["depth 1"]["standard error"] == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("means", "enough", "verdict"),
    [
        ([-1.0, -0.8], 2, "Depth helps: depth 1 is worse than depth 2 by 0.200 ± 0.005 a row on 400 rows kept out."),
        ([-1.0, -0.805, -0.8], 2, "depth 3 by 0.200 ± 0.005 a row on 400 rows kept out. Depth 2 is enough"),
        ([-0.8, -0.9, -1.0], 1, "Depth does not help here: depth 1 is the best on 400 rows"),
        ([-0.805, -0.8, -0.9], 1, "does not help here: depth 1 is as good, within two standard errors, as the best, "
                                  "depth 2 (0.005 ± 0.005 a row"),
    ],
)  # fmt: skip
def test_the_verdict_on_known_scores(means, enough, verdict):
    found = comparison(means)
    assert found.enough == enough
    assert verdict in str(found)


def test_leave_one_out_that_cannot_be_trusted_is_told():
    shapes = np.full((2, 400), 0.2)
    assert "cannot be trusted" not in str(comparison([-1.0, -0.8], by="loo", shapes=shapes))
    shapes[:, :100] = 0.9
    assert "cannot be trusted at 25% of the rows" in str(comparison([-1.0, -0.8], by="loo", shapes=shapes))


def step(rows=200):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, rows)
    return x[:, None], np.where(x < 0, -1.0, 1.0) + 0.05 * rng.standard_normal(rows)


@pytest.fixture(scope="module")
def stepped():
    return deepwell.compare_depths(*step(), depths=(1, 2), **QUICK)


def test_depth_helps_on_a_step_and_the_scores_are_those_of_the_fits(stepped):
    X, y = step()
    assert stepped.best == stepped.enough == 2
    assert str(stepped).startswith("Depth helps: depth 1 is worse than depth 2")
    train, test = split_rows(200, 0)
    model = deepwell.fit(X[train], y[train], depth=2, **QUICK)
    expected = model.predict_dist(X[test]).log_prob(y[test])
    np.testing.assert_allclose(stepped.log_densities[1], expected, atol=2e-4)


def test_leave_one_out_agrees_with_leaving_rows_out_one_by_one():
    """Depth 1, theta fixed: y_i = phi_i v + noise of variance s_i, so that every p(y_i | y_-i) is in closed form."""
    pytest.importorskip("arviz")
    x = np.linspace(-2.0, 2.0, 30)[:, None]
    y = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(30)
    sampled = {"preset": "quick", "burn_in": 2_000, "num_chains": 4, "num_samples": 500, "spacing": 20}
    model = deepwell.fit(x, y, depth=1, num_inducing=10, noise_variance=0.1, fixed=["*"], **sampled)
    found, shapes = model.leave_one_out(x, y)
    deep_gp, targets = model.posterior.model, model.y_scaling.standardise(y[:, None])[:, 0]
    inputs = jnp.asarray(model.x_scaling.standardise(x), float)
    projected = deep_gp.layers[0].project(deep_gp.prepare().layers[0], inputs)
    features = np.asarray(projected.features, float)
    noise = np.asarray(projected.variance, float).ravel() + 0.1

    def left_out(i):
        kept = np.arange(30) != i
        weighted = features[kept] / noise[kept, None]
        covariance = np.linalg.inv(np.eye(10) + features[kept].T @ weighted)
        mean = features[i] @ covariance @ weighted.T @ targets[kept]
        return stats.norm.logpdf(targets[i], mean, np.sqrt(features[i] @ covariance @ features[i] + noise[i]))

    exact = np.array([left_out(i) for i in range(30)]) - np.log(model.y_scaling.scale[0])
    seen = np.log(np.mean(np.exp(model.log_likelihoods(x, y)), 0))
    assert np.all(shapes < 0.7)
    assert np.max(np.abs(found - exact)) < 0.1
    assert abs(np.mean(found - exact)) < 0.02
    assert np.mean(seen - exact) > 0.06  # the twin: rows that the fit has seen score too well


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of ArviZ, at the impossible row
@pytest.mark.parametrize(("correlation", "low", "high"), [(0.0, 0.8, 1.2), (0.9, 0.03, 0.1)])
@pytest.mark.parametrize("chains", [1, 4])
def test_leave_one_out_knows_what_the_samples_are_worth(monkeypatch, chains, correlation, low, high):
    """Of log-likelihoods that are autoregressive with coefficient r, about (1 - r) / (1 + r) of an independent one."""
    arviz = pytest.importorskip("arviz")
    given, real, draws, rows = [], arviz.loo, 1_000, 20
    monkeypatch.setattr(
        arviz, "loo", lambda *data, reff, **options: given.append(reff) or real(*data, **options, reff=reff)
    )
    noise = np.random.default_rng(0).standard_normal((chains, draws, rows))
    scores = 0.1 * lfilter([1.0], [1.0, -correlation], noise, axis=1)
    scores[:, :, 0] = -np.inf  # a row that is impossible under every sample says nothing
    found, _ = leave_one_out(scores)
    assert low < given[0] < high
    assert np.all(np.isfinite(found[1:]))


def test_depths_of_classes_by_validation_and_bad_options():
    X, y = step(100)
    labels = np.where(y > 0, "up", "down")
    labels[-1] = "never seen in the fit"
    options = {"preset": "quick", "num_inducing": 8, "burn_in": 50, "num_samples": 10}
    found = deepwell.compare_depths(X, labels, depths=[1], seed=3, **options)
    assert found.log_densities.shape == (1, 20)
    assert np.all(found.log_densities <= 0.0)
    assert "nothing to compare with" in str(found)
    for bad, said in (
        ({"by": "magic"}, "by='magic': choose from validation, loo"),
        ({"depths": (1, 1)}, "must list at least one depth, and none twice"),
        ({"depths": (0,)}, "depth=0 must be a positive integer"),
        ({"validation": 1.5}, "validation=1.5 must lie strictly"),
        ({"validation": 0.001}, "100 rows are too few"),
        ({"depth": 3}, "depth cannot be a setting here"),
        ({"by": "loo", "inference": "dsvi"}, "needs posterior samples, and dsvi has none"),
        ({"by": "loo", "num_samples": 1}, "at least 4 samples per chain, not 1"),
    ):
        with pytest.raises(InputError, match=said):
            deepwell.compare_depths(X, y, **bad)


def test_the_command_line_compares_depths_and_draws(stepped, tmp_path):
    X, y = step()
    pd.DataFrame({"x": X[:, 0], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    picture = tmp_path / "depths.png"
    command = ["depths", str(tmp_path / "t.csv"), "--target", "y", "--depth", "1", "--depth", "2", "--quiet"]
    command += ["--preset", "quick", "--picture", str(picture)]
    command += [word for name in ("num_inducing", "burn_in") for word in ("--set", f"{name}={QUICK[name]}")]
    result = RUN.invoke(app, command)
    assert result.exit_code == 0, result.output
    assert str(stepped).split(" by ")[0] in result.output.replace("\n", " ")
    assert picture.read_bytes().startswith(b"\x89PNG")
    at = command.index(str(picture))
    refused = RUN.invoke(app, [*command[:at], str(tmp_path / "depths.txt"), *command[at + 1 :]])
    assert refused.exit_code == 2
    assert "ends in .png, .svg or .pdf" in refused.output
