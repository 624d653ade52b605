import dataclasses
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from deepwell import DeepGPClassifier, DeepGPRegressor, Settings
from deepwell.doors.estimator import NOT_SETTINGS

TINY = {"preset": "quick", "burn_in": 60, "n_samples": 6, "spacing": 2, "n_inducing": 8, "random_state": 0}


@parametrize_with_checks([DeepGPRegressor(preset="quick")])
def test_every_check_of_sklearn_passes(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    return X, X["a"].to_numpy() + 0.1 * rng.standard_normal(60)


def test_answers_come_from_the_fitted_model(data):
    X, y = data
    regressor = DeepGPRegressor(**TINY).fit(X, y)
    mean, std = regressor.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, regressor.predict_dist(X).mean)
    np.testing.assert_array_equal(std, regressor.predict_dist(X).std)
    assert list(regressor.feature_names_in_) == ["a", "b"]
    assert regressor.model_.feature_names == ("a", "b")
    draws = regressor.sample_y(X, n_samples=4000, random_state=1)
    assert draws.shape == (60, 4000)
    np.testing.assert_allclose(draws.mean(1), mean, atol=0.2)
    assert regressor.score(X, y) == pytest.approx(1 - np.sum((y - mean) ** 2) / np.sum((y - y.mean()) ** 2))


def test_several_targets(data):
    X, y = data
    regressor = DeepGPRegressor(**TINY).fit(X, np.column_stack([y, 10 - y]))
    assert regressor.predict(X).shape == (60, 2)
    assert regressor.sample_y(X, n_samples=3).shape == (60, 2, 3)


@pytest.mark.parametrize("estimator", [DeepGPRegressor, DeepGPClassifier])
def test_every_setting_is_a_parameter(estimator):
    """``n_`` here is ``num_`` there; what is no setting is listed."""
    parameters = set(inspect.signature(estimator).parameters) - set(NOT_SETTINGS)
    assert parameters == {field.name.replace("num_", "n_") for field in dataclasses.fields(Settings)}
    assert set(estimator().get_params()) == parameters | set(NOT_SETTINGS)


def test_settings_that_estimators_lacked_reach_the_fit(data):
    given = {"shortest_window": 5, "hidden_variance": 0.02, "output_variance": 0.9, "noise_variance": 0.03,
             "e_steps": 7, "e_samples": 3, "m_steps": 9, "jitter": 1e-4}  # fmt: skip
    settings = DeepGPRegressor(**TINY, **given).fit(*data).model_.settings
    assert {name: getattr(settings, name) for name in given} == given


def test_parameters_reach_the_fit_and_clones_agree(data):
    X, y = data
    regressor = DeepGPRegressor(depth=1, n_chains=2, kernel="matern52", objective="expected", **TINY)
    a, b = regressor.fit(X, y).predict(X), clone(regressor).fit(X, y).predict(X)
    np.testing.assert_array_equal(a, b)
    settings = regressor.model_.settings
    assert (settings.depth, settings.num_chains, settings.kernel, settings.num_inducing) == (
        1,
        2,
        "matern52",
        8,
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(regressor)).predict(X), a)


def test_inside_sklearns_tools(data):
    X, y = data
    piped = make_pipeline(StandardScaler(), DeepGPRegressor(**TINY))
    assert len(cross_val_score(piped, X, y, cv=2)) == 2
    search = GridSearchCV(DeepGPRegressor(**TINY), {"depth": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["depth"] in (1, 2)


def test_bad_input_is_named_and_a_failed_fit_is_no_fit(data):
    X, y = data
    with pytest.raises(ValueError, match=r"column 'b' of X has a missing value .NaN. in row 3"):
        DeepGPRegressor(**TINY).fit(X.assign(b=np.where(np.arange(60) == 3, np.nan, 0.0)), y)
    failed = DeepGPRegressor(preset="none")
    with pytest.raises(ValueError, match="unknown preset"):
        failed.fit(X, y)
    with pytest.raises(NotFittedError):
        failed.predict(X)


def test_a_bad_parameter_is_named(data):
    X, y = data
    with pytest.raises(ValueError, match="unknown preset 'fastest'"):
        DeepGPRegressor(preset="fastest").fit(X, y)
    with pytest.raises(ValueError, match="depth=-1"):
        DeepGPRegressor(depth=-1).fit(X, y)
