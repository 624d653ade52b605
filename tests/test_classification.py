"""Classification: scikit-learn's contract, imbalance, every method, and the digits that ship with scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

import deepwell
from deepwell import DeepGPClassifier, InputError
from deepwell.assess.evaluate import evaluate
from deepwell.data.response import read_response
from deepwell.data.scaling import input_scaling
from deepwell.data.splits import split_rows
from deepwell.fits.prepare import with_likelihood
from deepwell.fits.presets import make_settings
from deepwell.model.deep_gp import OBJECTIVES
from deepwell.model.likelihoods.registry import response_kind
from deepwell.predict.class_probabilities import ClassProbabilities

TINY = {"preset": "quick", "burn_in": 60, "n_samples": 6, "spacing": 2, "n_inducing": 8, "random_state": 0}


@parametrize_with_checks([DeepGPClassifier(preset="quick")])
def test_every_check_of_sklearn_passes(estimator, check):
    check(estimator)


def test_labels_of_any_kind_come_back():
    iris = load_iris()
    names = iris.target_names[iris.target]
    for labels in (names, iris.target + 0.0, pd.Series(names, dtype="category")):
        model = DeepGPClassifier(**TINY).fit(iris.data, labels)
        predicted = model.predict(iris.data)
        assert set(predicted) <= set(np.asarray(labels))
        np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(labels)))
        probabilities = model.predict_proba(iris.data)
        np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-9)
        np.testing.assert_array_equal(model.predict_dist(iris.data).mode, predicted)


def test_default_likelihood_by_the_number_of_classes():
    x = np.random.default_rng(0).standard_normal(40)
    two, three = np.where(x > 0, "a", "b"), np.digitize(x, [-0.5, 0.5])

    def chosen(y, **settings):
        asked = make_settings(**settings)
        return with_likelihood(asked, read_response(y, response_kind(asked.likelihood))).likelihood

    assert chosen(two) == chosen(x > 0) == "bernoulli"
    assert chosen(three, likelihood="classes") == "robust-max"
    assert chosen(three) == chosen(x) == "gaussian"
    assert chosen(three, likelihood="classes", inference="bnn") == "softmax"
    assert chosen(two, likelihood="softmax") == "softmax"


METHODS = ["sghmc", "sghmc-bayes", "dsvi", "dsvi-decoupled"]


def ring(rows=300, seed=0):
    """Inside or outside a circle: no linear rule does better than the base rate of 63 %."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2))
    return X, np.where(np.hypot(*X.T) < 0.69, "inside", "outside")


LIKELIHOODS = ["robust-max", "softmax", "bernoulli", "bernoulli-logit"]


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", range(4))
def test_every_method_and_likelihood_learns_a_ring(number, turn):
    """Each likelihood meets both objectives and two of the methods, each method two of the likelihoods."""
    likelihood, method, objective = LIKELIHOODS[number], METHODS[(number + turn) % 4], OBJECTIVES[(number + turn) % 2]
    X, y = ring()
    X_new, y_new = ring(seed=1)
    model = deepwell.fit(
        X, y, preset="quick", inference=method, objective=objective, likelihood=likelihood, burn_in=500,
        num_inducing=16, learning_rate=0.03,
    )  # fmt: skip
    found = model.predict_dist(X_new).scores(y_new)
    assert found["accuracy"] > 0.9
    assert found["test_log_likelihood"] > -0.35  # the base rate has -0.66
    assert model.numerical_issues() == ""


def test_a_rare_class_is_found():
    """Ten rows of 400 are of a class of their own, well apart: they are found, and nothing else is called so."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((390, 2)), rng.standard_normal((10, 2)) * 0.3 + [4.0, 4.0]])
    y = np.repeat(["common", "rare"], [390, 10])
    model = DeepGPClassifier(preset="quick", random_state=0).fit(X, y)
    X_new = np.vstack([rng.standard_normal((390, 2)), rng.standard_normal((10, 2)) * 0.3 + [4.0, 4.0]])
    predicted = model.predict(X_new)
    assert np.mean(predicted[390:] == "rare") >= 0.9
    assert np.mean(predicted[:390] == "common") >= 0.99
    confidence = model.predict_proba(X_new)[:, 1]
    assert np.mean(confidence) == pytest.approx(10 / 400, abs=0.02)


def test_scores_agree_with_sklearn():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    y = np.asarray(["a", "b", "c"])[[rng.choice(3, p=row) for row in p]]
    prediction = ClassProbabilities(p, np.zeros(200), ("a", "b", "c"))
    found = prediction.scores(y)
    assert found["test_log_likelihood"] == pytest.approx(-log_loss(y, p, labels=["a", "b", "c"]))
    by_class = [brier_score_loss(y == label, p[:, i]) for i, label in enumerate("abc")]
    assert found["brier"] == pytest.approx(np.sum(by_class))
    assert found["accuracy"] == pytest.approx(np.mean(prediction.mode == y))


def test_calibration_error_of_known_cases():
    """Always 80 % sure: right 80 % of the time is no error, always right an error of 0.2."""
    p = np.tile([0.8, 0.2], (100, 1))
    prediction = ClassProbabilities(p, np.zeros(100), (0, 1))
    assert prediction.scores(np.repeat([0, 1], [80, 20]))["calibration_error"] == pytest.approx(0.0, abs=1e-12)
    assert prediction.scores(np.zeros(100, int))["calibration_error"] == pytest.approx(0.2)


def test_entropy_splits_into_noise_and_disagreement():
    """Two samples, sure of different classes: all uncertainty is disagreement; two unsure ones: none is."""
    from deepwell.predict.class_probabilities import mean_and_entropy

    sure = np.log(np.clip([[[1.0, 0.0]], [[0.0, 1.0]]], 1e-12, 1.0))
    unsure = np.log(np.full((2, 1, 2), 0.5))
    for samples, information in ((sure, np.log(2.0)), (unsure, 0.0)):
        prediction = ClassProbabilities(*mean_and_entropy(samples), ("a", "b"))
        assert prediction.entropy[0] == pytest.approx(np.log(2.0))
        assert prediction.information[0] == pytest.approx(information, abs=1e-9)
    draws = ClassProbabilities(np.tile([0.3, 0.7], (1, 1)), np.zeros(1), ("a", "b")).sample(20_000)
    assert np.mean(draws == "b") == pytest.approx(0.7, abs=0.02)
    unknown = ClassProbabilities(np.full((1, 2), 0.5), np.zeros(1), ("a", "b")).log_prob(["c"])
    assert unknown[0] == -np.inf


def test_a_class_missing_from_a_split_is_still_known():
    X, y = ring(60)
    y[0] = "neither"
    result = evaluate(X, y, range(3), preset="quick", burn_in=20, num_samples=2, spacing=1, num_inducing=8)
    assert set(result["mean"]) == {"test_log_likelihood", "accuracy", "brier", "calibration_error", "seconds"}
    assert np.isfinite(result["mean"]["test_log_likelihood"])


def test_bad_labels_are_named():
    X = np.zeros((4, 1))
    for y, message in (
        (["a", "b", None, "a"], "missing value .NaN. in row 2"),
        (["a", "b", 1.0, "a"], "mixes text and numbers"),
        (["a", "a", "a", "a"], "only one class, 'a'"),
    ):
        with pytest.raises(InputError, match=message):
            deepwell.fit(X, np.asarray(y, object), likelihood="classes")
    with pytest.raises(InputError, match="'c' in row 3, which is not one of the classes"):
        deepwell.fit(X, ["a", "b", "a", "c"], likelihood="classes", classes=["a", "b"])
    with pytest.raises(InputError, match="for two classes, and y has 3"):
        deepwell.fit(X, ["a", "b", "a", "c"], likelihood="bernoulli")
    with pytest.raises(InputError, match="no gradient for bnn"):
        deepwell.fit(X, ["a", "b", "a", "c"], likelihood="robust-max", inference="bnn")
    with pytest.raises(InputError, match="is not for classification"):
        DeepGPClassifier(likelihood="gaussian").fit(X, ["a", "b", "a", "c"])
    with pytest.raises(InputError, match="is not for regression"):
        deepwell.DeepGPRegressor(likelihood="softmax").fit(X, [1.0, 2.0, 3.0, 4.0])


def test_labels_with_gaps_are_named_not_taken_for_numbers():
    X = np.zeros((4, 1))
    for y in (["a", "b", np.nan, "a"], pd.array(["a", "b", pd.NA, "a"], dtype="string")):
        with pytest.raises(InputError, match=r"column 'y' of y has a missing value \(NaN\) in row 2"):
            deepwell.fit(X, np.asarray(y, object))
    for classes, message in (
        ([], "classes is empty"), (5, "must be a list of labels"), ("ab", "must be a list of labels"),
        (["a", "b", 1], "mixes text and numbers"), (["a", "b", "a"], "lists a label twice"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            deepwell.fit(X, ["a", "b", "b", "a"], classes=classes)
    with pytest.raises(InputError, match="rows differ in length"):
        deepwell.fit(X, [[1], [2], [3], [1, 2]])
    with pytest.raises(InputError, match="mixes text and numbers"):
        DeepGPClassifier().fit(X, np.asarray(["a", 1, "b", 2], object))


def test_estimators_start_from_each_other():
    X, y = ring(80)
    first = DeepGPClassifier(**TINY).fit(X, y)
    again = DeepGPClassifier(init=first, preset="quick", burn_in=20, n_samples=2, spacing=1, random_state=0).fit(X, y)
    assert again.model_.settings.likelihood == "bernoulli"
    with pytest.raises(InputError, match="cannot be had"):
        DeepGPClassifier(init=first, likelihood="softmax").fit(X, y)


def test_one_large_column_among_many_small_ones_is_scaled_by_itself():
    """31 rates and an amount in the ten thousands: no unit in common, though all begin at 0."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 11, (200, 31)) / 10.0, 1e4 * rng.integers(0, 11, 200)])
    X[0] = 0.0
    scale = input_scaling(X).scale
    assert scale[-1] > 1e3 * scale[0]
    alike = input_scaling(X * [*np.full(31, 1.0), 1e-5]).scale
    np.testing.assert_allclose(alike, alike[0])
    assert np.all(np.isfinite(input_scaling(1e200 * X).scale))


def test_constant_and_nearly_constant_pixels_are_harmless():
    """Of 64 pixels 40 never change and one lights up once, in another picture than those asked about."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 64))
    X[:, :23] = rng.integers(0, 17, (200, 23))
    y = np.where(X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3], "up", "down")
    odd = X.copy()
    odd[0, 63] = 1.0
    settings = {"preset": "quick", "num_inducing": 16}
    plain, lit = (deepwell.fit(table, y, **settings) for table in (X, odd))
    assert np.all(np.isfinite(lit.predict_proba(odd)))
    np.testing.assert_allclose(lit.predict_proba(X[1:]), plain.predict_proba(X[1:]), atol=0.1)
    assert lit.predict_dist(X).scores(y)["accuracy"] > 0.85


def test_files_keep_classes(tmp_path):
    X, y = ring(80)
    model = deepwell.fit(X, y, preset="quick", burn_in=50, num_samples=4, spacing=2, num_inducing=8)
    model.save(tmp_path / "ring.deepwell")
    again = deepwell.load(tmp_path / "ring.deepwell")
    assert again.classes == ("inside", "outside")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    warm = deepwell.fit(X, y, preset="quick", init=again, burn_in=20, num_samples=2, spacing=1)
    assert warm.classes == again.classes


@pytest.mark.slow
def test_digits():
    """Splits 0 to 4: accuracy at least 98 %, calibration error below 2 %."""
    data = load_digits()
    found = []
    for split in range(5):
        train, test = split_rows(len(data.data), split)
        better = {"num_inducing": 150, "step_size": 0.05}  # docs/likelihoods.md has those of the preset, too
        model = deepwell.fit(data.data[train], data.target[train], likelihood="classes", seed=split, **better)
        found.append(model.predict_dist(data.data[test]).scores(data.target[test]))
    assert np.mean([row["accuracy"] for row in found]) >= 0.98
    assert np.mean([row["calibration_error"] for row in found]) < 0.02
