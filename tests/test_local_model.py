"""The local part as a piece of a fitted model: settings, predictions, files, and what is left without it."""

import dataclasses
import json

import numpy as np
import pytest
from fuzz_files import parts, sealed
from scipy.special import logsumexp

import deepwell
from deepwell import DeepwellFileError, InputError
from deepwell.store.tensor_file import KEY

SHORT = {"preset": "quick", "num_inducing": 10, "burn_in": 600, "num_samples": 20, "spacing": 10}


def ripples(rows, seed=0):
    """A wave too fine for ten inducing points, which sixty rows a wavelength show well."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (rows, 1))
    return X, X[:, 0] + np.sin(12.0 * X[:, 0]) + 0.05 * rng.standard_normal(rows)


@pytest.fixture(scope="module")
def fitted():
    return deepwell.fit(*ripples(500), local="auto", **SHORT)


def without(model):
    return dataclasses.replace(model, local=None)


def test_it_is_learned_where_it_helps_and_the_model_is_otherwise_the_same(fitted):
    X, y = ripples(200, seed=1)
    plain = deepwell.fit(*ripples(500), local=False, **SHORT)
    assert plain.local is None
    np.testing.assert_array_equal(plain.predict(X, return_std=True), without(fitted).predict(X, return_std=True))
    with_it, alone = fitted.predict_dist(X).scores(y), plain.predict_dist(X).scores(y)
    assert fitted.local.gain > 0.5
    assert with_it["test_log_likelihood"] > alone["test_log_likelihood"] + 0.5
    assert with_it["rmse"] < 0.5 * alone["rmse"]
    assert 0.85 < with_it["coverage_95"] <= 1.0


def test_a_row_depends_on_itself_alone_and_blocks_agree_with_the_whole(fitted):
    X, _ = ripples(700, seed=2)
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_array_equal(fitted.predict(X[300:307]), mean[300:307])
    np.testing.assert_array_equal(fitted.predict_dist(X).std, std)
    np.testing.assert_array_equal(np.concatenate([block.mean for block in fitted.predict_blocks(X)]), mean)


def test_log_likelihoods_of_the_samples_mix_to_that_of_the_prediction(fitted):
    X, y = ripples(600, seed=3)
    per_sample = fitted.log_likelihoods(X, y)
    mixed = logsumexp(per_sample, axis=0) - np.log(len(per_sample))
    np.testing.assert_allclose(mixed, fitted.predict_dist(X).log_prob(y), atol=2e-3)


def test_files_hold_it_or_leave_it_out(fitted, tmp_path):
    X, _ = ripples(50, seed=4)
    fitted.save(tmp_path / "m.deepwell")
    loaded = deepwell.load(tmp_path / "m.deepwell")
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), fitted.predict(X, return_std=True))
    assert loaded.local.gain == fitted.local.gain
    fitted.save(tmp_path / "small.deepwell", training_rows=False)
    small = deepwell.load(tmp_path / "small.deepwell")
    np.testing.assert_array_equal(small.predict(X), without(fitted).predict(X))
    assert (tmp_path / "small.deepwell").stat().st_size < (tmp_path / "m.deepwell").stat().st_size


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_neighbours", 10**9), ("num_neighbours", 0), ("num_neighbours", "many"), ("gain", None), ("kernel", 3)],
)
def test_a_hostile_local_part_is_refused(fitted, tmp_path, name, value):
    path = tmp_path / "m.deepwell"
    fitted.save(path)
    header, data = parts(path.read_bytes())
    description = json.loads(header["__metadata__"][KEY])
    description["local"][name] = value
    header["__metadata__"][KEY] = json.dumps(description)
    path.write_bytes(sealed(header, data))
    with pytest.raises(DeepwellFileError, match="is damaged"):
        deepwell.load(path)


def test_settings():
    with pytest.raises(InputError, match="local='yes' must be True, False or 'auto'"):
        deepwell.fit(*ripples(30), local="yes", **SHORT)
    X, y = ripples(60)
    classes = deepwell.fit(X, y > 0, local=True, **SHORT)
    few = deepwell.fit(X[:19], y[:19], local=True, **SHORT)
    assert classes.local is None
    assert few.local is None
    assert deepwell.PRESETS["default"]["local"] == "auto"
    assert "local" not in deepwell.PRESETS["paper"]


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["student-t", "heteroscedastic"])
def test_other_noises_and_several_targets(likelihood):
    X, y = ripples(300)
    model = deepwell.fit(X, np.stack([y, -2.0 * y], 1), local=True, likelihood=likelihood, **SHORT)
    X_test, y_test = ripples(100, seed=1)
    both = np.stack([y_test, -2.0 * y_test], 1)
    with_it, alone = (m.predict_dist(X_test).scores(both) for m in (model, without(model)))
    assert with_it["rmse"] < 0.7 * alone["rmse"]
    assert with_it["test_log_likelihood"] > alone["test_log_likelihood"]


@pytest.mark.slow
def test_conformal_intervals_rest_on_it():
    X, y = ripples(600)
    model = deepwell.fit(X, y, calibration=0.25, local=True, **SHORT)
    X_test, y_test = ripples(400, seed=1)
    lower, upper = model.predict_interval(X_test, 0.9, conformal=True)
    wide_lower, wide_upper = without(model).predict_interval(X_test, 0.9)
    assert 0.83 < np.mean((lower <= y_test) & (y_test <= upper)) < 0.97
    assert np.mean(upper - lower) < 0.5 * np.mean(wide_upper - wide_lower)
