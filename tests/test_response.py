"""y as numbers, counts or classes, by what it holds and by what the likelihood is for."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from deepwell import InputError
from deepwell.data.response import few_whole_numbers, guess_kind, read_response, shared_classes
from deepwell.model.likelihoods import Gaussian
from deepwell.model.likelihoods.registry import LIKELIHOODS, initial_likelihood, names_for, response_kind

KINDS = {
    "numbers": (np.arange(4.0), "numbers"),
    "whole numbers": (np.arange(4), "numbers"),
    "numbers as text": (np.array(["1", "2.5", "-3", "4"]), "numbers"),
    "text": (["a", "b", "a", "c"], "classes"),
    "truth values": (np.array([True, False, True, True]), "classes"),
    "categories": (pd.Series(["b", "a", "b", "b"], dtype="category"), "classes"),
    "one column of text": (pd.DataFrame({"t": ["a", "b", "a", "b"]}), "classes"),
    "two columns": (np.ones((4, 2)), "numbers"),
}


@pytest.mark.parametrize("name", KINDS)
def test_without_a_kind_y_decides(name):
    y, kind = KINDS[name]
    assert read_response(y).kind == kind


def test_labels_numbers_and_names_come_back():
    labels = pd.Series(["b", "a", "c", "a"], name="kind")
    response = read_response(labels)
    assert (response.names, response.classes) == (("kind",), ("a", "b", "c"))
    np.testing.assert_array_equal(response.values, [[1], [0], [2], [0]])
    np.testing.assert_array_equal(response.original, labels)
    np.testing.assert_array_equal(read_response([2, 1, 1, 2], "classes", [2, 1]).values[:, 0], [0, 1, 1, 0])
    np.testing.assert_array_equal(read_response([2, 1], "classes", [2, 1]).original, [2, 1])
    np.testing.assert_array_equal(read_response([3, 1, 4]).original, [3.0, 1.0, 4.0])
    table = pd.DataFrame({"u": [1, 2], "v": [3, 4]})
    assert read_response(table).names == ("u", "v")
    np.testing.assert_array_equal(read_response(table).original, table)


def test_only_numbers_are_standardised():
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(read_response(y).scaling(), [[3.0], [np.std(y)]])
    for kind in ("counts", "classes"):
        np.testing.assert_array_equal(read_response(y, kind).scaling(), [[0.0], [1.0]])


def test_several_targets_share_their_classes():
    assert shared_classes([["a", "b"], ["c", "b"]]) == ("a", "b", "c")
    assert shared_classes([[1, 2], [3, 2]], "classes") == (1, 2, 3)
    assert shared_classes([[1, 2], [3, 2]]) is None


def test_guesses_for_a_column_of_a_file():
    assert guess_kind([0, 1, 1, 0]) == guess_kind([1.5, 2.5, 1.5]) == guess_kind(["a", "b", "c"]) == "classes"
    assert guess_kind([0, 1, 2]) == guess_kind([0, 1]) == guess_kind(np.zeros((4, 2))) == "numbers"
    assert few_whole_numbers([3, 1, 3, 2]) == 3
    assert few_whole_numbers(np.arange(21)) == few_whole_numbers([1.0, 2.0]) == few_whole_numbers(np.ones((3, 2))) == 0


@pytest.mark.parametrize(
    ("y", "kind", "classes", "message"),
    [
        ([1.0, -2.0], "counts", None, "column 'y' of y holds -2 in row 1, which is not a count"),
        ([1.0, 2.5], "counts", None, "holds 2.5 in row 1, which is not a count"),
        ([1.0, 2.0**25], "counts", None, "holds counts above 16777216"),
        (
            [1.0, 2.0],
            "numbers",
            [1, 2],
            r"classes=\[1, 2\] needs a classification target, but the likelihood is for numb",
        ),
        (np.ones((2, 2)), "classes", None, "a classification target must be one column"),
        ([1.0, np.nan], "classes", None, r"column 'y' of y has a missing value \(NaN\) in row 1"),
        (np.arange(1_001), "classes", None, "has 1001 classes: is it a number"),
        ([(1, 2), "a"], "classes", None, "rows differ in length"),
    ],
)
def test_what_cannot_be_read_is_named(y, kind, classes, message):
    with pytest.raises(InputError, match=message):
        read_response(y, kind, classes)


def test_every_likelihood_starts_from_its_kind_of_response():
    y = {"numbers": [0.5, 1.5], "counts": [0, 3], "classes": ["a", "b"]}
    for name, (cls, _) in LIKELIHOODS.items():
        response = read_response(y[cls.response], response_kind(name))
        assert type(initial_likelihood(name, response, 0.1)) is cls
        assert name in names_for(response.kind)
    gaussian = initial_likelihood("gaussian", read_response([0.5, 1.5]), 0.25)
    np.testing.assert_allclose(gaussian.noise_variance, 0.25, rtol=1e-4)
    poisson = initial_likelihood("poisson", read_response([0, 3], "counts"), 0.1)
    np.testing.assert_allclose(np.exp(poisson.offset), 1.5, rtol=1e-6)
    own = Gaussian(jnp.zeros(1))
    assert response_kind(own) == "numbers"
    assert initial_likelihood(own, read_response([0.5, 1.5]), 0.1) is own
    assert response_kind(None) is None
    assert response_kind("classes") == "classes"
