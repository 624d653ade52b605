"""Hostile tables, each with its expected outcome (docs/robustness.md): a fit whose answers are finite, or an error that
names the culprit."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deepwell
from deepwell import InputError
from deepwell.data.tables import read_table

TINY = {"preset": "quick", "burn_in": 60, "num_samples": 6, "spacing": 2, "num_inducing": 8}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)


def fit(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return deepwell.fit(X, y, **{**TINY, **settings})


def assert_answers(model, X, rows):
    mean, std = model.predict(X, return_std=True)
    assert mean.shape[0] == rows
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert np.all(std > 0)


def categories(values):
    return pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(values)})


FITTED = {
    "scales from 1e-30 to 1e30": (X * np.array([1e-30, 1e30]), Y),
    "target of 1e-30": (X, 1e-30 * Y),
    "target of 1e30": (X, 1e30 * Y),
    "offsets of 1e9": (X + 1e9, Y + 1e9),
    "all rows equal": (np.ones((40, 2)), Y),
    "collinear columns": (np.column_stack([X, X.sum(1)]), Y),
    "constant target": (X, np.full(40, 7.0)),
    "single outlier of 1e12": (X, np.where(np.arange(40) == 3, 1e12, Y)),
    "integers": ((10 * X).astype(np.int64), (10 * Y).astype(np.int32)),
    "unsigned bytes": ((10 * X).astype(np.uint8), Y),
    "booleans": (X > 0, Y),
    "float16": (X.astype(np.float16), Y.astype(np.float16)),
    "big-endian": (X.astype(">f8"), Y.astype(">f4")),
    "non-contiguous": (np.repeat(X, 2, axis=1)[::-1, ::2], Y[::-1]),
    "fortran order": (np.asfortranarray(X), Y),
    "numeric categories": (categories([1, 2] * 20), Y),
    "numbers as text": (pd.DataFrame({"a": [str(v) for v in X[:, 0]]}), Y),
    "nullable integers": (pd.DataFrame({"a": pd.array([1, 2] * 20, "Int64")}), Y),
    "lists": (X.tolist(), Y.tolist()),
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
    "three rows": (X[:3], Y[:3]),
    "five rows": (X[:5], Y[:5]),
    "5,000 columns": (RNG.standard_normal((40, 5_000)), Y),
    "negative zeros": (np.where(X > 0, X, -0.0), Y),
    "subnormal numbers": (X * 1e-310, Y),
}


@pytest.mark.parametrize("name", FITTED)
def test_it_is_fitted_and_answers_are_finite(name):
    inputs, y = FITTED[name]
    assert_answers(fit(inputs, y, depth=1), inputs, len(inputs))


def test_read_only_arrays_are_left_alone():
    inputs, y = X.copy(), Y.copy()
    inputs.flags.writeable = y.flags.writeable = False
    assert_answers(fit(inputs, y, depth=1), inputs, 40)
    np.testing.assert_array_equal(inputs, X)


def test_far_away_the_prior_comes_back():
    model = fit(X, Y, burn_in=600, fixed=["layers.*.kernel.*", "layers.*.inducing_inputs"], depth=1)
    far = np.array([[1e6, -1e6], [1e12, 1e12], [1e300, -1e300]])
    mean, std = model.predict(far, return_std=True)
    np.testing.assert_allclose(mean, np.mean(Y), atol=1e-6)
    prior = np.std(Y) * np.sqrt(1.0 + float(model.posterior.model.likelihood.noise_variance[0]))
    np.testing.assert_allclose(std, prior, rtol=1e-4)


with_nan = np.where(np.arange(40)[:, None] == 5, [1.0, np.nan], X)
REFUSED = {
    "all-NaN column": (
        pd.DataFrame({"a": X[:, 0], "empty": np.nan}),
        Y,
        r"column 'empty' .* row 0 \(40 such values",
    ),
    "missing value": (with_nan, Y, "column 'x1' of X has a missing value .NaN. in row 5"),
    "target missing in some rows": (X, np.where(np.arange(40) % 9 == 4, np.nan, Y), "'y' of y has a missing .* row 4"),
    "infinite value": (np.where(X > 2, np.inf, X), Y, "an infinite value in row"),
    "text categories": (categories(["red", "blue"] * 20), Y, "column 'kind' of X holds 'red', which is not a number"),
    "mixed types": (pd.DataFrame({"a": [1, "two"] * 20}), Y, "column 'a' of X holds 'two'"),
    "dates": (pd.DataFrame({"day": pd.date_range("2020", periods=40)}), Y, "column 'day' of X holds dates"),
    "durations": (pd.DataFrame({"t": pd.to_timedelta(np.arange(40), "D")}), Y, "column 't' of X holds dates or dur"),
    "complex": (X + 1j, Y, "complex numbers"),
    "sparse matrix": (scipy.sparse.csr_matrix(X), Y, r"X is a sparse matrix: pass X.toarray\(\)"),
    "masked array": (np.ma.masked_array(X, X > 1), Y, "masked values"),
    "ragged lists": ([[1.0, 2.0], [3.0]], Y[:2], "rows differ in length"),
    "three dimensions": (np.ones((40, 2, 2)), Y, "two dimensions"),
    "no rows": (X[:0], Y[:0], "X has no rows"),
    "no columns": (X[:, :0], Y, "X has no columns"),
    "fewer targets than rows": (X, Y[:10], "X has 40 rows, but y has 10"),
    "nested objects": (pd.DataFrame({"a": [{}] * 40}), Y, "column 'a' of X holds {}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_the_culprit_named(name):
    inputs, y, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        deepwell.fit(inputs, y, **TINY)


def test_columns_in_another_order_are_put_in_theirs_and_unknown_ones_are_refused():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = fit(frame, Y, depth=1)
    np.testing.assert_array_equal(model.predict(frame[["b", "a"]]), model.predict(frame))
    with pytest.raises(InputError, match="no column 'b'"):
        model.predict(frame[["a"]].assign(c=0.0))
    with pytest.raises(InputError, match="column 'b' of X holds 'new', which is not a number"):
        model.predict(pd.DataFrame({"a": [0.0], "b": ["new"]}))


FILES = {
    "empty.csv": (b"", "cannot be read as a table"),
    "latin.csv": ("a,b\nå,1\n".encode("latin-1"), "cannot be read as a table"),
    "ragged.csv": (b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table"),
    "binary.csv.gz": (b"\x00\x01\x02", "cannot be read as a table"),
    "broken.parquet": (b"PAR1 nothing", "cannot be read as a table"),
    "table.xlsx": (b"", "use .csv, .csv.gz or .parquet"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_tables_are_refused(name, tmp_path):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64),
    st.sampled_from([0.0, -0.0, 1.0, 1e30, -1e30, 1e-30, 1e9, 5e-324, 1.7e308]),
    st.integers(-5, 5).map(float),
)


@st.composite
def tables(draw):
    """1 to 32 rows of 2 columns: any numbers, repeated rows, constant or equal columns, any target."""
    rows = draw(st.integers(1, 32))
    columns = []
    for _ in range(3):
        kind = draw(st.sampled_from(["any", "constant", "few"]))
        if kind == "constant":
            columns.append(np.full(rows, draw(VALUES)))
        else:
            pool = VALUES if kind == "any" else st.sampled_from(draw(st.lists(VALUES, min_size=1, max_size=3)))
            columns.append(np.array(draw(st.lists(pool, min_size=rows, max_size=rows))))
    if draw(st.booleans()):
        columns[1] = columns[0]
    return np.column_stack(columns[:2]), columns[2]


def check_table(table):
    """No NaN, no exception."""
    inputs, y = table
    model = fit(inputs, y, **dict.fromkeys(TINY.keys() - {"preset"}))  # None: what the preset says
    assert_answers(model, inputs, len(inputs))


HOSTILE = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=20, **HOSTILE)
@given(tables())
def test_20_random_tables(table):
    check_table(table)


@pytest.mark.slow
@settings(max_examples=500, **HOSTILE)
@given(tables())
def test_500_random_tables(table):
    check_table(table)
