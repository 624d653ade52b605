import gzip
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

from deepwell import InputError
from deepwell.assess.evaluate import evaluate
from deepwell.data import benchmarks, load
from deepwell.data.benchmarks import OpenML, regression

RECORDED = Path(sklearn.__file__).parent / "datasets" / "tests" / "data" / "openml" / "id_561"
needs_data = pytest.mark.skipif(
    not os.environ.get("DEEPWELL_DATA") or not Path(os.environ["DEEPWELL_DATA"]).is_dir(),
    reason="DEEPWELL_DATA does not name a folder",
)


def test_a_local_folder_comes_first(tmp_path, monkeypatch):
    (tmp_path / "uci").mkdir()
    pd.DataFrame({"a": [1.0, 2.0], "t": [3.0, 4.0]}).to_csv(tmp_path / "uci" / "kin8nm.csv.gz", index=False)
    monkeypatch.setenv("DEEPWELL_DATA", str(tmp_path))
    data = load("kin8nm")
    assert list(data.X.columns) == ["a"]
    assert list(data.y) == [3.0, 4.0]


def test_one_line_adds_a_data_set(tmp_path, monkeypatch):
    (tmp_path / "uci").mkdir()
    pd.DataFrame({"a": [1.0, 2.0], "t": [3.0, 4.0]}).to_csv(tmp_path / "uci" / "mine.csv.gz", index=False)
    monkeypatch.setenv("DEEPWELL_DATA", str(tmp_path))
    monkeypatch.setitem(benchmarks.LOADERS, "mine", regression())
    monkeypatch.setitem(benchmarks.LOADERS, "own", lambda name, folder: benchmarks.Dataset(name, folder, [1.0]))
    assert list(load("mine").y) == [3.0, 4.0]
    assert load("own") == ("own", tmp_path, [1.0], None, False)
    monkeypatch.delenv("DEEPWELL_DATA")
    with pytest.raises(InputError, match="mine is not on OpenML: set DEEPWELL_DATA"):
        load("mine")


@pytest.mark.skipif(not RECORDED.is_dir(), reason="scikit-learn was installed without its recorded responses")
def test_fetching_from_openml_on_a_recorded_response(tmp_path, monkeypatch):
    """The responses for data set 561 (cpu, 209 rows) that scikit-learn ships, served in place of the network."""
    asked = []

    def recorded(request, *args, **kwargs):
        url = request.get_full_url() if hasattr(request, "get_full_url") else request
        asked.append(url)
        kind = {"features": "jdf", "qualities": "jdq"}.get(url.split("/")[-2], "jd")
        name = "data-v1-dl-52739.arff.gz" if ".arff" in url or "download" in url else f"api-v1-{kind}-561.json.gz"
        answer = io.BytesIO((RECORDED / name).read_bytes())
        answer.info = lambda: {"Content-Encoding": "gzip"}
        return answer

    monkeypatch.delenv("DEEPWELL_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", recorded)
    source = OpenML(561, "class", 209, 6, ("vendor",))
    monkeypatch.setitem(benchmarks.LOADERS, "cpu", regression(source))
    data = load("cpu")
    assert data.X.shape == (209, 6)
    text = gzip.decompress((RECORDED / "data-v1-dl-52739.arff.gz").read_bytes()).decode()
    first = text.split("@data")[-1].split("@DATA")[-1].strip().splitlines()[0].split(",")
    assert data.y[0] == float(first[-1])
    count = len(asked)
    load("cpu")
    assert len(asked) == count  # the second time it comes from the copy on disk
    monkeypatch.setitem(benchmarks.LOADERS, "cpu", regression(source._replace(rows=210)))
    with pytest.raises(InputError, match="OpenML's cpu is 209 x 6, not 210 x 6"):
        load("cpu")


def test_without_folder_or_network_it_says_what_to_do(tmp_path, monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.delenv("DEEPWELL_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", offline)
    with pytest.raises(InputError, match=r"could not be fetched .* set DEEPWELL_DATA"):
        load("kin8nm")
    with pytest.raises(InputError, match="power is not on OpenML: set DEEPWELL_DATA"):
        load("power")
    with pytest.raises(InputError, match="unknown data set 'iris': choose from boston"):
        load("iris")


@needs_data
@pytest.mark.parametrize(("name", "shape"), [("boston", (506, 13)), ("kin8nm", (8192, 8)), ("naval", (11934, 16))])
def test_benchmark_files_have_their_shapes(name, shape):
    data = load(name)
    assert data.X.shape == shape
    assert np.all(np.isfinite(data.y))


@needs_data
def test_quick_fits_of_real_data_beat_a_constant_by_far():
    data = load("energy")
    mean = evaluate(data.X, data.y, [100], preset="quick")["mean"]
    constant = -0.5 * np.log(2 * np.pi * np.e * np.var(data.y))
    assert mean["rmse"] < 0.5 * np.std(data.y)
    assert mean["test_log_likelihood"] > constant + 1.0


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "paper", "spread"), [("energy", -0.552, 0.189), ("concrete", -2.943, 0.084)])
def test_paper_preset_reproduces_the_papers_figure(name, paper, spread):
    """z > -2 against the paper's SGHMC DGP 2 over splits 0 to 2."""
    data = load(name)
    mean = evaluate(data.X, data.y, range(3), preset="paper", depth=2)["mean"]
    z = (mean["test_log_likelihood"] - paper) / (spread * np.sqrt(1 / 3 + 1 / 10))
    assert z > -2


def test_digits_ship_with_sklearn():
    data = load("digits")
    assert data.X.shape == (1797, 64)
    assert data.is_class
    assert set(data.y) == set(range(10))


def idx(array):
    return gzip.compress(
        bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape) + array.tobytes()
    )


def test_mnist_from_its_four_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    pictures, labels = rng.integers(0, 256, (5, 2, 3), np.uint8), rng.integers(0, 10, 5, np.uint8)
    for part, chosen in (("train", slice(0, 3)), ("t10k", slice(3, 5))):
        (tmp_path / "mnist" / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(pictures[chosen]))
        (tmp_path / "mnist" / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(labels[chosen]))
    monkeypatch.setenv("DEEPWELL_DATA", str(tmp_path))
    data = load("mnist")
    np.testing.assert_array_equal(data.X, pictures.reshape(5, 6))
    np.testing.assert_array_equal(data.y, labels)
    assert data.num_train == 3
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(idx(labels[:1]))
    with pytest.raises(InputError, match="2 pictures, but 1 labels"):
        load("mnist")
    for content, message in (
        (gzip.compress(b"nonsense"), "not an idx file"),
        (gzip.compress(gzip.decompress(idx(labels))[:-2]), "cut off: it holds 3 of 5"),
        (b"no gzip", "cannot be read"),
    ):
        (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(content)
        with pytest.raises(InputError, match=message):
            load("mnist")


@needs_data
def test_the_real_mnist():
    data = load("mnist")
    assert data.X.shape == (70_000, 784)
    assert data.num_train == 60_000
    np.testing.assert_array_equal(data.y[:5], [5, 0, 4, 1, 9])


def test_fingerprints_are_kept_for_machines_without_rdkit(tmp_path, monkeypatch):
    """Bits kept by a machine that has RDKit are used as they are, unless the molecules are others."""
    from deepwell.data import molecules

    smiles = ["C", "CCO", "c1ccccc1"]
    made = np.random.default_rng(0).integers(0, 2, (3, 512), np.uint8)
    pd.DataFrame({"smiles": smiles, "pce": [1.0, 2.0, 3.0]}).to_csv(tmp_path / "cep.csv.gz", index=False)
    monkeypatch.setenv("DEEPWELL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with monkeypatch.context() as patched:
        patched.setattr(molecules, "_compute", lambda smiles: made)
        np.testing.assert_array_equal(load("cep").X, made)
    monkeypatch.setattr(molecules, "_compute", lambda smiles: pytest.fail("the bits are kept already"))
    np.testing.assert_array_equal(load("cep").X, made)
    assert list(load("cep").y) == [1.0, 2.0, 3.0]
    monkeypatch.setattr(molecules, "_compute", lambda smiles: 1 - made)
    np.testing.assert_array_equal(molecules.fingerprints([*smiles[:2], "CC"], tmp_path), 1 - made)


def test_fingerprints_by_rdkit():
    """Substructures share bits: ethanol's carbon with ethane's, and nothing with benzene's but chance."""
    pytest.importorskip("rdkit")
    from deepwell.data.molecules import _compute

    bits = _compute(["CCO", "OCC", "c1ccccc1"])
    np.testing.assert_array_equal(bits[0], bits[1])  # one molecule written in two ways
    assert np.any(bits[0] != bits[2])
    with pytest.raises(InputError, match="row 1 holds 'nonsense', which is not a molecule"):
        _compute(["C", "nonsense"])
