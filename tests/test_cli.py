import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import deepwell
from deepwell.cli.arguments import add_likelihood, read_settings
from deepwell.cli.main import app
from deepwell.data.response import read_response
from deepwell.data.splits import split_rows
from deepwell.fits.group import fit_group
from deepwell.fits.prepare import with_likelihood
from deepwell.fits.presets import make_settings
from deepwell.model.likelihoods.registry import response_kind

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one table in three formats and a model fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a", "b"])
    table["y"] = table["a"] * 3 + 100
    table.to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "t.csv.gz", index=False)
    table.to_parquet(folder / "t.parquet")
    result = RUN.invoke(app, ["fit", str(folder / "t.csv"), "--target", "y", "--out", str(folder / "m.deepwell"),
                              "--preset", "quick", "--depth", "1", "--chains", "2"])  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


def test_fit_then_predict_in_every_format(folder):
    model = deepwell.load(folder / "m.deepwell")
    assert model.settings.depth == 1
    assert model.posterior.draws[0] == 2
    truth = pd.read_csv(folder / "t.csv")
    for name, out in (("t.csv", "p.csv"), ("t.csv.gz", "p.csv.gz"), ("t.parquet", "p.parquet")):
        result = RUN.invoke(
            app, ["predict", str(folder / "m.deepwell"), str(folder / name), "--out", str(folder / out)]
        )
        assert result.exit_code == 0, result.output
        read = pd.read_parquet if out.endswith("parquet") else pd.read_csv
        predicted = read(folder / out)
        assert list(predicted.columns) == ["mean", "std", "q0.025", "q0.975"]
        np.testing.assert_allclose(predicted["mean"], model.predict(truth[["a", "b"]]), rtol=1e-12)
        assert np.corrcoef(predicted["mean"], truth["y"])[0, 1] > 0.9
        assert np.all((predicted["q0.025"] < predicted["mean"]) & (predicted["mean"] < predicted["q0.975"]))


def test_evaluate_writes_the_scores_of_the_documented_splits(folder):
    out = folder / "scores.json"
    result = RUN.invoke(app, ["evaluate", str(folder / "t.csv"), "--target", "y", "--splits", "2", "--json", str(out),
                              "--preset", "quick", "--depth", "1", "--quiet"])  # fmt: skip
    assert result.exit_code == 0, result.output
    scores = json.loads(out.read_text())
    assert set(scores) == {"splits", "mean"}
    names = {"test_log_likelihood", "rmse", "crps", "coverage_95", "seconds"}
    assert set(scores["mean"]) == names
    assert [row["split"] for row in scores["splits"]] == [0, 1]
    table = pd.read_csv(folder / "t.csv")
    X, y = table[["a", "b"]].to_numpy(), table["y"].to_numpy()
    (first, _), (train, test) = split_rows(80, 0), split_rows(80, 1)
    _, model = fit_group([(X[first], y[first]), (X[train], y[train])], [0, 1], preset="quick", depth=1)
    error = model.predict(X[test]) - y[test]
    assert scores["splits"][1]["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))


def test_splits_follow_the_protocol():
    order = np.random.default_rng([3, 7]).permutation(11)
    train, test = split_rows(11, split=7, seed=3)
    np.testing.assert_array_equal(train, order[:8])
    np.testing.assert_array_equal(test, order[8:])


def test_demo_prints_scores_and_leaves_a_picture_and_a_report(tmp_path, monkeypatch):
    small = {"depth": 2, "preset": "quick"}
    monkeypatch.setattr("deepwell.assess.demo.DIABETES", small)
    monkeypatch.setattr("deepwell.assess.demo.STEP", small)
    result = RUN.invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    assert "deep GP, depth 2" in result.output
    assert (tmp_path / "demo" / "deepwell.png").read_bytes().startswith(b"\x89PNG")
    assert deepwell.load(tmp_path / "demo" / "diabetes.deepwell").feature_names[0] == "age"
    report = tmp_path / "demo" / "report.html"
    assert str(report) in result.output.replace("\n", "")
    assert "disease progression: a deepwell report" in report.read_text()
    assert "ridge regression" in report.read_text()


BAD = {
    "unknown column": (["fit", "t.csv", "--target", "z", "--out", "x.deepwell"], "no column 'z': the table has a, b"),
    "no file": (["fit", "absent.csv", "--target", "y", "--out", "x.deepwell"], "no such file"),
    "other format": (["fit", "t.xlsx", "--target", "y", "--out", "x.deepwell"], "is not a table deepwell reads"),
    "empty": (["fit", "empty.csv", "--target", "y", "--out", "x.deepwell"], "cannot be read as a table"),
    "ragged": (["fit", "ragged.csv", "--target", "y", "--out", "x.deepwell"], "cannot be read as a table"),
    "not text": (["fit", "binary.csv", "--target", "y", "--out", "x.deepwell"], "cannot be read as a table"),
    "not parquet": (["fit", "fake.parquet", "--target", "y", "--out", "x.deepwell"], "cannot be read as a table"),
    "text": (["fit", "text.csv", "--target", "y", "--out", "x.deepwell"], "column 'a' of X holds 'red'"),
    "only a target": (["fit", "single.csv", "--target", "y", "--out", "x.deepwell"], "no input column"),
    "existing output": (["fit", "t.csv", "--target", "y", "--out", "m.deepwell"], "exists: choose another name"),
    "no folder": (["fit", "t.csv", "--target", "y", "--out", "nowhere/x.deepwell"], "does not exist"),
    "unknown preset": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--preset", "p"], "unknown preset 'p'"),
    "unknown device": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--device", "tpu"], "unknown device"),
    "not a model": (["predict", "t.csv", "t.csv", "--out", "p2.csv"], "is not a deepwell model file"),
    "missing input": (["predict", "m.deepwell", "single.csv", "--out", "p2.csv"], "no column 'a'"),
    "odd output": (["predict", "m.deepwell", "t.csv", "--out", "p.xlsx"], "not a kind of table deepwell writes"),
    "repeated target": (["fit", "t.csv", "--target", "y", "--target", "y", "--out", "x.deepwell"], "more than once"),
    "broken gzip": (["fit", "broken.csv.gz", "--target", "y", "--out", "x.deepwell"], "cannot be read as a table"),
    "bad seed": (["evaluate", "t.csv", "--target", "y", "--seed", "-1"], "seed=-1"),
    "demo on a file": (["demo", "--out", "t.csv"], "cannot make the folder"),
    "no split": (["evaluate", "t.csv", "--target", "y", "--splits", "0"], "at least one split"),
    "log not text": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--log", "binary.csv", "--force"],
                     "binary.csv exists and is not the log of a fit"),
    "log a folder": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--log", ".", "--force"], "is a folder"),
    "log over model": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--log", "./x.deepwell"],
                       "x.deepwell is named as two outputs"),
    "report over log": (["fit", "t.csv", "--target", "y", "--out", "x.deepwell", "--log", "x", "--report", "x"],
                        "x is named as two outputs"),
    "depth of depths": (["depths", "t.csv", "--target", "y", "--set", "depth=3"], "depth cannot be a setting here"),
    "no samples": (["depths", "t.csv", "--target", "y", "--by", "loo", "--inference", "dsvi"], "and dsvi has none"),
    "test size": (["evaluate", "t.csv", "--target", "y", "--test-size", "1.5"], "test_size=1.5"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_in_one_sentence(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    (folder / "empty.csv").write_text("")
    (folder / "t.xlsx").write_text("")
    content = bytearray((folder / "t.csv.gz").read_bytes())
    content[20:60] = bytes(40)
    (folder / "broken.csv.gz").write_bytes(content)
    (folder / "ragged.csv").write_text("a,y\n1,2\n1,2,3\n")
    (folder / "binary.csv").write_bytes(b"a,y\n\xff\xfe,1\n")
    (folder / "fake.parquet").write_text("a,y\n1,2\n")
    (folder / "text.csv").write_text("a,y\nred,1\nblue,2\n")
    (folder / "single.csv").write_text("y\n1\n2\n")
    before = (folder / "m.deepwell").read_bytes()
    arguments, message = BAD[name]
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert result.output.startswith("deepwell: ")
    assert "Traceback" not in result.output
    assert (folder / "m.deepwell").read_bytes() == before


def test_version():
    assert RUN.invoke(app, ["--version"]).output.strip() == deepwell.__version__
    as_module = subprocess.run([sys.executable, "-m", "deepwell", "--version"], capture_output=True, text=True)
    assert as_module.stdout.strip() == deepwell.__version__


def test_any_setting_can_be_given_and_a_model_of_another_method_be_the_start(folder):
    common = [str(folder / "t.csv"), "--target", "y", "--preset", "quick", "--quiet"]
    first, second = folder / "first.deepwell", folder / "second.deepwell"
    short = ["--set", "burn_in=30", "--set", "num_inducing=[8, 6]"]
    assert RUN.invoke(app, ["fit", *common, "--out", str(first), "--inference", "dsvi", *short]).exit_code == 0
    result = RUN.invoke(app, ["fit", *common, "--out", str(second), "--set", "burn_in=5", "--init", str(first)])
    assert result.exit_code == 0, result.output
    model = deepwell.load(second)
    assert (model.settings.inference, model.settings.burn_in) == ("sghmc", 5)
    assert [len(layer.inducing_inputs) for layer in model.posterior.model.layers] == [8, 6]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--set", "burn_in"], "must have the form NAME=VALUE"),
        (["--set", "depth=2", "--depth", "3"], "depth is set twice"),
        (["--set", "brun_in=5"], "did you mean 'burn_in'"),
        (["--set", "seed=3"], "seed is not a setting"),
        (["--init", "absent.deepwell"], "no such model file: absent.deepwell"),
    ],
)
def test_bad_settings_are_named(folder, option, message):
    out = str(folder / "bad.deepwell")
    result = RUN.invoke(app, ["fit", str(folder / "t.csv"), "--target", "y", "--out", out, *option])
    assert result.exit_code == 2
    assert message in result.output


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A table with a class in words, the same as two numbers, and as counts."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((90, 2)), columns=["a", "b"])
    table["kind"] = np.where(table["a"] > 0, "up", "down")
    table["flag"] = (table["a"] > 0).astype(int)
    table["count"] = rng.poisson(np.exp(table["a"]))
    table["grade"] = np.digitize(table["a"], [-1, 0, 1])
    table.to_csv(folder / "t.csv", index=False)
    return folder


QUICK = ["--preset", "quick", "--set", "burn_in=100", "--set", "num_inducing=8", "--quiet"]


def one_target(folder, target):
    table = pd.read_csv(folder / "t.csv")[["a", "b", target]]
    table.to_csv(folder / f"{target}.csv", index=False)
    return str(folder / f"{target}.csv")


@pytest.mark.parametrize(
    ("target", "task", "likelihood", "said"),
    [
        ("kind", None, "bernoulli", "the target is treated as a class"),
        ("flag", None, "bernoulli", "the target is treated as a class"),
        ("flag", "regression", "gaussian", ""),
        ("count", "counts", "poisson", ""),
        ("grade", None, "gaussian", "takes 4 whole numbers"),
        ("grade", "classification", "robust-max", ""),
    ],
)
def test_the_task_is_recognised_or_named(classes, target, task, likelihood, said, capsys):
    y = pd.read_csv(classes / "t.csv")[[target]]
    asked = make_settings(**add_likelihood({}, task, y))
    response = read_response(y.iloc[:, 0], response_kind(asked.likelihood))
    assert with_likelihood(asked, response).likelihood == likelihood
    assert said in capsys.readouterr().err
    with pytest.raises(deepwell.InputError, match="cannot be combined with --set likelihood"):
        add_likelihood({"likelihood": "gaussian"}, "counts", y)


def test_classes_are_predicted_with_their_probabilities(classes):
    table, model, out = one_target(classes, "kind"), str(classes / "k.deepwell"), str(classes / "k.csv")
    assert RUN.invoke(app, ["fit", table, "--target", "kind", "--out", model, *QUICK]).exit_code == 0
    assert RUN.invoke(app, ["predict", model, table, "--out", out]).exit_code == 0
    predicted = pd.read_csv(out)
    assert list(predicted.columns) == ["class", "P(down)", "P(up)"]
    np.testing.assert_array_equal(predicted["class"] == "up", predicted["P(up)"] > predicted["P(down)"])
    assert np.mean(predicted["class"] == pd.read_csv(table)["kind"]) > 0.8


def test_classes_are_evaluated_by_their_own_scores(classes):
    table, out = one_target(classes, "kind"), classes / "scores.json"
    result = RUN.invoke(app, ["evaluate", table, "--target", "kind", "--splits", "2", "--json", str(out), *QUICK])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())["mean"]
    assert set(found) == {"test_log_likelihood", "accuracy", "brier", "calibration_error", "seconds"}
    assert "accuracy" in result.output
    bad = RUN.invoke(app, ["evaluate", table, "--target", "kind", "--task", "guessing"])
    assert bad.exit_code == 2
    assert "unknown task 'guessing'" in bad.output


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("True", True), ("False", False), ("None", None), ("3", 3), ("1e-3", 0.001), ("[5,5]", [5, 5]),
     ("se + linear", "se + linear"), ("dsvi-decoupled", "dsvi-decoupled"), ("", "")],
)  # fmt: skip
def test_settings_are_read_as_json_or_python_writes_them(text, value):
    assert read_settings([f"name={text}"]) == {"name": value}
