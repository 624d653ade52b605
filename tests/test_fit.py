import dataclasses
import json

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deepwell
from deepwell import DeepwellFileError, InputError
from deepwell.assess.small_problems import features_and_variance, quadratic
from deepwell.data.scaling import fit_scaling
from deepwell.fits.presets import PRESETS, make_settings

TINY = {"preset": "quick", "burn_in": 60, "num_samples": 6, "spacing": 2, "num_inducing": 8}


def table(rows=60, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(rows)


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    frame = pd.DataFrame(X, columns=["north", "east", "up"])
    return deepwell.fit(frame, pd.Series(y, name="height"), **TINY)


def test_same_seed_same_bits_and_another_seed_another_result(fitted):
    X, y = table()
    again = deepwell.fit(X, y, **TINY)
    np.testing.assert_array_equal(fitted.predict(X), again.predict(X))
    assert not np.array_equal(fitted.predict(X), deepwell.fit(X, y, seed=1, **TINY).predict(X))


def test_quick_fit_learns_and_its_error_bars_are_sane():
    X, y = table(200)
    model = deepwell.fit(X[:150], y[:150], preset="quick")
    mean, std = model.predict(X[150:], return_std=True)
    assert np.sqrt(np.mean((mean - y[150:]) ** 2)) < 0.5 * np.std(y)
    assert np.mean(np.abs(mean - y[150:]) < 2 * std) > 0.8
    assert model.trace[-1][1] > model.trace[0][1]


def test_a_rows_prediction_depends_on_that_row_alone(fitted):
    X = np.random.default_rng(3).standard_normal((700, 3))  # more than one block
    mean, std = fitted.predict(X, return_std=True)
    order = np.random.default_rng(4).permutation(700)
    np.testing.assert_array_equal(fitted.predict(X[order], return_std=True), (mean[order], std[order]))
    for part in (slice(650, 653), slice(5, 6)):
        np.testing.assert_array_equal(fitted.predict(X[part], return_std=True), (mean[part], std[part]))
        interval = np.array(fitted.predict_dist(X).interval(0.9))
        np.testing.assert_array_equal(fitted.predict_dist(X[part]).interval(0.9), interval[:, part])
    dist = fitted.predict_dist(X)
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(dist.std, std, rtol=1e-12)


def test_units_and_offsets_do_not_matter():
    X, y = table()
    plain = deepwell.fit(X, y, **TINY)
    other = deepwell.fit(X * np.array([1e-20, 1.0, 1e20]) + np.array([0.0, 1e6, 0.0]), 1e9 + 1e3 * y, **TINY)
    scaled = (other.predict(X * np.array([1e-20, 1.0, 1e20]) + np.array([0.0, 1e6, 0.0])) - 1e9) / 1e3
    np.testing.assert_allclose(scaled, plain.predict(X), atol=0.02)


def test_columns_are_matched_by_name(fitted):
    X, y = table()
    plain_names = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    other = deepwell.fit(plain_names, y, **TINY)
    np.testing.assert_array_equal(other.predict(plain_names[["x2", "x0", "x1"]]), fitted.predict(X))
    frame = pd.DataFrame(X, columns=["north", "east", "up"])
    shuffled = frame[["up", "north", "east"]].assign(extra=0.0)
    np.testing.assert_array_equal(fitted.predict(shuffled), fitted.predict(frame))


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_other_depths(depth):
    X, y = table(40)
    model = deepwell.fit(X, y, depth=depth, num_chains=2, **TINY)
    assert np.all(np.isfinite(model.predict(X, return_std=True)))
    assert len(model.posterior.model.layers) == depth
    assert model.posterior.samples[0].shape[:2] == (2, 6)


def test_every_choice_of_the_model_fits():
    X, y = table(40, 4)
    Y = np.column_stack([y, -2 * y])
    model = deepwell.fit(
        X, Y, **{**TINY, "num_inducing": (8, 6)}, width=2, kernel=["matern32", "se + linear"], objective="expected",
        inner_samples=3, priors=False, subtract_gradient_noise=True, batch_size=16,
        fixed=["likelihood.log_noise_variance"], noise_variance=0.5,
    )  # fmt: skip
    assert model.predict(X).shape == (40, 2)
    assert np.all(np.isfinite(model.predict(X, return_std=True)))
    np.testing.assert_allclose(np.exp(model.posterior.model.likelihood.log_noise_variance), 0.5, rtol=1e-6)
    assert [len(layer.inducing_inputs) for layer in model.posterior.model.layers] == [8, 6]


def test_a_whole_fit_at_depth_one_has_the_closed_form_posterior():
    """theta fixed: mean and variance of the function against the exact FITC posterior at the fitted Z."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((64, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(64)
    model = deepwell.fit(
        X, y, depth=1, num_inducing=8, fixed=["*"], noise_variance=0.2, num_chains=16, burn_in=3000, num_samples=100,
        spacing=50, step_size=0.05, local=False,
    )  # fmt: skip
    gp = model.posterior.model
    q = quadratic(gp, model.x_scaling.standardise(X), model.y_scaling.standardise(y[:, None]), "predictive")
    grid = np.linspace(-2, 2, 15)[:, None]
    features, variance = features_and_variance(gp, model.x_scaling.standardise(grid))
    scale = model.y_scaling.scale[0]
    exact_mean = model.y_scaling.offset[0] + scale * features @ np.linalg.solve(q.H, q.b)
    exact_variance = scale**2 * (np.sum(features * np.linalg.solve(q.H, features.T).T, 1) / 64 + variance)
    prediction = model.predict_dist(grid)
    assert np.max(np.abs(prediction.mean - exact_mean) / np.sqrt(exact_variance)) < 0.15
    np.testing.assert_allclose(prediction.function_var, exact_variance, rtol=0.2)
    np.testing.assert_allclose(prediction.noise_var, 0.2 * scale**2, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "se*linear", "matern12"])
@pytest.mark.parametrize("rows", [1, 60])
def test_kernels_whose_variance_can_vanish_learn_without_a_refused_step(kernel, rows):
    X, y = table(rows, 2)
    model = deepwell.fit(X, y, kernel=kernel, **TINY)
    assert (model.refused_moves, model.refused_updates, model.numerical_issues()) == (0, 0, "")
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


def test_troubles_are_told(fitted):
    troubled = dataclasses.replace(fitted, refused_updates=3, jitter_retries=2)
    assert "3 hyperparameter steps were refused because they left the finite numbers" in troubled.numerical_issues()
    assert "100 times the usual jitter" in troubled.numerical_issues()
    assert fitted.numerical_issues() == ""


def test_settings_given_as_numpy_numbers_can_be_saved(tmp_path):
    X, y = table(40)
    numpys = {"depth": np.int64(2), "num_inducing": np.array([8, 6]), "learning_rate": np.float32(0.01)}
    model = deepwell.fit(X, y, **{**TINY, **numpys})
    model.save(tmp_path / "m.deepwell")
    assert deepwell.load(tmp_path / "m.deepwell").settings.num_inducing == (8, 6)


def test_with_everything_fixed_only_the_sampler_moves():
    X, y = table(40)
    model = deepwell.fit(X, y, fixed=["*"], **TINY)
    assert np.exp(model.posterior.model.likelihood.log_noise_variance[0]) == pytest.approx(0.01, rel=1e-5)
    assert np.std(model.posterior.samples[0]) > 0


def test_double_precision_when_enabled():
    X, y = table(40)
    with jax.enable_x64(True):
        model = deepwell.fit(X, y, **TINY)
        assert model.posterior.samples[0].dtype == np.float64
        assert np.all(np.isfinite(model.predict(X)))


NASTY = {
    "one row": (np.ones((1, 2)), np.ones(1)),
    "two rows": (np.eye(2), np.arange(2.0)),
    "all rows equal": (np.ones((30, 2)), np.arange(30.0)),
    "duplicate rows": (np.repeat(np.eye(3), 12, 0), np.arange(36.0)),
    "constant column": (np.column_stack([np.ones(40), np.arange(40.0)]), np.arange(40.0)),
    "constant target": (np.random.default_rng(0).standard_normal((40, 2)), np.full(40, 3.25)),
    "one outlier": (np.arange(40.0)[:, None], np.append(np.arange(39.0), 1e12)),
    "collinear": (np.arange(40.0)[:, None] @ np.ones((1, 3)), np.arange(40.0)),
    "huge and tiny": (np.arange(40.0)[:, None] * np.array([[1e-30, 1e30]]), np.arange(40.0) * 1e-25),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_tables_are_fitted_without_nan(name):
    X, y = NASTY[name]
    model = deepwell.fit(X, y, **TINY)
    far = X + 1e6 * (1.0 + np.abs(X))
    for inputs in (X, far, np.full_like(X, 1e300)):
        mean, std = model.predict(inputs, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)
    if name == "constant target":
        np.testing.assert_allclose(model.predict(X), 3.25, atol=0.5)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_tables_are_fitted_without_nan(data):
    rows = data.draw(st.integers(3, 30))
    values = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0])
    X = np.array(data.draw(st.lists(st.tuples(values, values), min_size=rows, max_size=rows)))
    y = np.array(data.draw(st.lists(values, min_size=rows, max_size=rows)))
    model = deepwell.fit(X, y, **{**TINY, "num_inducing": 3, "burn_in": 20})
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


X2, Y2 = table(20, 2)


def with_value(value, row=4, column=1):
    X = X2.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "settings", "message"),
    [
        (with_value(np.nan), Y2, {}, "column 'x1' of X has a missing value .* in row 4"),
        (with_value(np.inf), Y2, {}, "column 'x1' of X has an infinite value in row 4"),
        (X2, np.where(np.arange(20) == 7, np.nan, Y2), {}, "'y' of y has a missing value .* in row 7"),
        (pd.DataFrame({"a": ["red"] * 20, "b": Y2}), Y2, {}, "column 'a' of X holds 'red'"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=20)}), Y2, {}, "column 'a' of X holds dates"),
        (X2.astype(complex), Y2, {}, "complex"),
        (pd.DataFrame(X2, columns=["a", "a"]), Y2, {}, "more than one column named 'a'"),
        (
            pd.DataFrame({"a": pd.array([True, None] * 10, "boolean")}),
            Y2,
            {},
            "'a' of X has a missing value .* in row 1",
        ),
        (scipy.sparse.csr_matrix(X2), Y2, {}, "X is a sparse matrix"),
        (np.ma.masked_array(X2, X2 > 0), Y2, {}, "X is a masked array"),
        ([[1.0, 2.0], [3.0]], Y2[:2], {}, "rows differ in length"),
        ([[10**400]] * 20, Y2, {}, "which is not a number"),
        (np.empty((0, 2)), np.empty(0), {}, "X has no rows"),
        (np.empty((20, 0)), Y2, {}, "X has no columns"),
        (np.zeros(20), Y2, {}, "X must have two dimensions"),
        (X2, Y2[:10], {}, "X has 20 rows, but y has 10"),
        (X2, Y2, {"preset": "fast"}, "unknown preset 'fast': choose from default"),
        (X2, Y2, {"dept": 3}, "unknown option 'dept': did you mean 'depth'"),
        (X2, Y2, {"depth": 0}, "depth=0 must be a positive integer"),
        (X2, Y2, {"num_inducing": 2.5}, "num_inducing=2.5 must be a positive integer"),
        (X2, Y2, {"kernel": "rbf"}, "unknown kernel 'rbf'"),
        (X2, Y2, {"objective": "elbo"}, "unknown objective 'elbo'"),
        (X2, Y2, {"inference": "vi"}, "unknown inference 'vi'"),
        (X2, Y2, {"depth": 3, "width": [2]}, "width=.2,. has 1 entries, but 2 layers"),
        (X2, Y2, {"friction": 1.5}, "friction=1.5 must be below 1"),
        (X2, Y2, {"step_size": -1.0}, "step_size=-1.0 must be a positive number"),
        (X2, Y2, {"jitter": 2.0}, "jitter=2.0 must lie between"),
        (X2, Y2, {"shortest_window": -1}, "shortest_window=-1"),
        (X2, Y2, {"fixed": ["noise"]}, "matches no parameter"),
        (X2, Y2, {"fixed": "likelihood.*"}, "must be a list of parameter names"),
        (X2, Y2, {"priors": "no"}, "priors='no' must be True or False"),
        (X2, Y2, {"preset": ["quick"]}, "unknown preset"),
        (X2, Y2, {"seed": -1}, "seed=-1"),
    ],
)
def test_bad_input_is_refused_with_the_culprit_named(X, y, settings, message):
    with pytest.raises(InputError, match=message):
        deepwell.fit(X, y, **settings)


def test_wrong_columns_at_predict_are_refused(fitted):
    with pytest.raises(InputError, match="no column 'east': the table has north, up, west"):
        fitted.predict(pd.DataFrame(np.zeros((2, 3)), columns=["north", "up", "west"]))
    with pytest.raises(InputError, match="X has 2 columns, but the model was fitted on 3: north, east, up"):
        fitted.predict(np.zeros((4, 2)))
    with pytest.raises(InputError, match="missing value"):
        fitted.predict(np.full((1, 3), np.nan))


def test_paper_preset_is_the_papers():
    s = make_settings("paper")
    assert (s.width, s.num_inducing, s.batch_size, s.burn_in, s.window_size) == (10, 100, 10_000, 20_000, 300)
    assert (s.num_samples, s.spacing, s.priors, s.shortest_window) == (200, 50, False, 0)
    assert s.config(100).objective == "predictive"
    assert (s.step_size, s.friction, s.learning_rate) == (0.01, 0.05, 0.01)
    assert set(PRESETS) == {"default", "best", "paper", "quick"}


def test_saved_models_predict_the_same_bits(fitted, tmp_path):
    X, _ = table(20, seed=9)
    path = tmp_path / "model.deepwell"
    fitted.save(path)
    loaded = deepwell.load(path)
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), fitted.predict(X, return_std=True))
    assert loaded.feature_names == ("north", "east", "up")
    assert loaded.target_names == ("height",)
    assert loaded.feature_types == ("float64",) * 3
    assert loaded.settings == fitted.settings
    assert loaded.trace == fitted.trace


def test_model_files_are_plain_safetensors_with_one_json_string(fitted, tmp_path):

    from safetensors import safe_open

    fitted.save(tmp_path / "m.deepwell")
    with safe_open(tmp_path / "m.deepwell", "numpy") as file:
        assert set(file.metadata()) == {"deepwell"}
        assert json.loads(file.metadata()["deepwell"])["format"] == 3


def test_damaged_and_foreign_files_are_refused(fitted, tmp_path):
    path = tmp_path / "m.deepwell"
    fitted.save(path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    (tmp_path / "flipped").write_bytes(content)
    (tmp_path / "short").write_bytes(path.read_bytes()[:-10])
    (tmp_path / "foreign").write_bytes(b"not a model at all")
    for name, message in (("flipped", "damaged"), ("short", "not a deepwell"), ("foreign", "not a deepwell")):
        with pytest.raises(DeepwellFileError, match=message):
            deepwell.load(tmp_path / name)
    with pytest.raises(DeepwellFileError, match="no such model file"):
        deepwell.load(tmp_path / "absent")


def test_a_failed_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m.deepwell"
    fitted.save(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DeepwellFileError, match="No space left"):
        fitted.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_progress_is_reported_in_the_units_of_y(fitted):
    X, y = table()
    seen = []
    model = deepwell.fit(X, 1000 * y, callbacks=[seen.append], **TINY)
    assert seen[-1][:3] == ("sampling", 72, 72)
    assert seen[-1][3] == pytest.approx(model.trace[-1][1])
    assert seen[-1][3] == pytest.approx(fitted.trace[-1][1] - np.log(1000), abs=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e200, 1e200), min_size=2, max_size=20))
def test_scaling_restores_what_it_standardised(values):
    x = np.array(values)[:, None]
    scaling = fit_scaling(x)
    standard = scaling.standardise(x)
    assert np.all(np.isfinite(standard))
    np.testing.assert_allclose(scaling.restore(standard), x, rtol=1e-9, atol=1e-12 * np.max(np.abs(x)) + 1e-300)
