"""Model files: what is in them is read back, and nothing else is let in."""

import json
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from fuzz_files import SETTINGS, mutated, originals, parts, sealed, study, whole

import deepwell
from deepwell import DeepGPRegressor, DeepwellFileError
from deepwell.fits.settings import CLASSES, COUNTS, NUMBERS
from deepwell.store.tensor_file import KEY

ALLOWED = {"refused", "a model", "a state", "another fit's"}


def check(count, tmp_path):
    found = study(count, count, tmp_path)
    outcomes = {key[2] for key in found if isinstance(key, tuple)}
    print(dict(found))
    assert outcomes <= ALLOWED
    assert sum(n for key, n in found.items() if isinstance(key, tuple)) == count
    assert found["slowest, ms"] < 20_000
    for kind in ("truncated", "bits", "sizes", "deep"):
        assert found["model", kind, "a model"] == 0
    assert sum(n for key, n in found.items() if key[2:] == ("a model",)) > 0  # harmless, with a digest that fits


def test_300_mutated_files(tmp_path):
    check(300, tmp_path)


@pytest.mark.slow
def test_10000_mutated_files(tmp_path):
    check(10_000, tmp_path)


def test_an_untouched_file_is_read(tmp_path):
    for content in originals(tmp_path):
        header, data = parts(content)
        (tmp_path / "same.deepwell").write_bytes(whole(header, data))
        assert deepwell.load(tmp_path / "same.deepwell").feature_names == ("x0", "x1")
    damaged = mutated(np.random.default_rng(0), content, "truncated")
    (tmp_path / "same.deepwell").write_bytes(damaged)
    with pytest.raises(DeepwellFileError):
        deepwell.load(tmp_path / "same.deepwell")


def set_part(described, path, value):
    *way, last = path
    for step in way:
        described = described[step]
    described[last] = value


LENGTHSCALES = {"tensor": "posterior.model.layers.0.kernel.log_lengthscales"}
HOSTILE = {
    "absurd depth": (["settings", "depth"], 10**18),
    "endless kernel": (["settings", "kernel"], "se+" * 20_000),
    "absurd width": (["posterior", "model", "layers", 1, "mean", "width"], 10**9),
    "one array for everything": (["posterior", "samples"], [LENGTHSCALES] * 2),
    "endless jitter": (["jitter_retries"], 10**9),
    "no samples": (["posterior", "samples"], []),
    "another class": (["posterior", "class"], "Layer"),
    "an unknown class": (["posterior", "class"], "os.system"),
    "negative jitter": (["posterior", "model", "layers", 0, "jitter"], -1.0),
    "names that are none": (["feature_names"], [1, 2]),
    "more names than columns": (["feature_names"], ["a", "b", "c"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_descriptions_with_a_digest_that_fits_are_refused(name, tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 2))
    path = tmp_path / "m.deepwell"
    deepwell.fit(X, X[:, 0], width=2, **SETTINGS).save(path)
    header, data = parts(path.read_bytes())
    described = json.loads(header["__metadata__"][KEY])
    set_part(described, *HOSTILE[name])
    header["__metadata__"][KEY] = json.dumps(described)
    path.write_bytes(sealed(header, data))
    started = time.perf_counter()
    with pytest.raises(DeepwellFileError, match="is damaged"):
        deepwell.load(path)
    assert time.perf_counter() - started < 5


GOLDEN = sorted((Path(__file__).parent / "files").glob("*.deepwell"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_every_format_are_read_and_predict_what_they_did(path):
    """Within a thousandth of the predictive standard deviation, on whatever machine this is."""
    expected = json.loads(path.with_suffix(".json").read_text())
    model, X = deepwell.load(path), np.column_stack([expected["X"]["a"], expected["X"]["b"]])
    if model.classes is not None:
        assert list(model.classes) == expected["classes"]
        np.testing.assert_allclose(model.predict_proba(X), expected["probabilities"], atol=1e-3)
        return
    mean, std = model.predict(X, return_std=True)
    assert np.max(np.abs(mean - expected["mean"]) / std) < 1e-3
    np.testing.assert_allclose(std, expected["std"], rtol=1e-3)


def test_estimators_save_the_same_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 2))
    estimator = DeepGPRegressor(preset="quick", burn_in=20, n_inducing=4, random_state=0).fit(X, X[:, 0])
    estimator.save(tmp_path / "e.deepwell")
    np.testing.assert_array_equal(deepwell.load(tmp_path / "e.deepwell").predict(X), estimator.predict(X))
    joblib.dump(estimator, tmp_path / "e.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "e.joblib").predict(X), estimator.predict(X))


def test_there_is_a_golden_file_of_every_format_and_kind():
    kinds = {(deepwell.load(path).posterior.__class__.__name__, path.stem.split("-")[0]) for path in GOLDEN}
    assert ("SharedTheta", "format1") in kinds
    assert {kind for kind, form in kinds if form == "format2"} == {"SharedTheta", "OwnTheta", "Variational", "Networks"}
    likelihoods = {deepwell.load(path).settings.likelihood for path in GOLDEN}
    assert likelihoods == {*NUMBERS, *COUNTS, *CLASSES}
    assert not any(deepwell.load(path).settings.control_variates for path in GOLDEN)  # all older than these
