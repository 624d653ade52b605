"""Packages that may be missing: optional ones, and those that a machine which runs from a checkout lacks."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import deepwell
from deepwell import InputError
from deepwell.cli.main import app
from deepwell.errors import DISTRIBUTIONS, EXTRAS, is_installed, require

PROJECT = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
RUN = CliRunner()


@pytest.fixture
def missing(monkeypatch):
    def remove(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return remove


def names(requirements):
    return {re.split(r"[>=\[]", requirement)[0] for requirement in requirements}


def test_a_missing_package_is_named_with_the_extra_that_installs_it(missing):
    for package, extra in EXTRAS.items():
        assert package in names(PROJECT["optional-dependencies"][extra])
        assert package not in names(PROJECT["dependencies"])
        missing(package)
        assert not is_installed(package)
        with pytest.raises(InputError, match=rf"^this needs {package}: pip install 'deepwell\[{extra}\]'$"):
            require(package, "this")
    for package, distribution in {"jinja2": "jinja2", **DISTRIBUTIONS}.items():
        assert distribution in names(PROJECT["dependencies"])
        require(package, "this")
        missing(package)
        with pytest.raises(InputError, match=f"^this needs {distribution}: pip install {distribution}$"):
            require(package, "this")
    with pytest.raises(InputError, match=r"^this needs scikit-learn: pip install scikit-learn, or do that$"):
        require("sklearn", "this", otherwise="do that")


@pytest.mark.parametrize(("package", "name"), [("jinja2", "jinja2"), ("sklearn", "scikit-learn")])
def test_a_report_that_cannot_be_written_is_refused_before_the_fit(missing, tmp_path, package, name):
    table, out = tmp_path / "t.csv", tmp_path / "m.deepwell"
    X = np.random.default_rng(0).standard_normal(40)
    pd.DataFrame({"x": X, "y": X}).to_csv(table, index=False)
    missing(package)
    command = ["fit", str(table), "--target", "y", "--out", str(out), "--preset", "quick", "--set", "burn_in=20"]
    refused = RUN.invoke(app, [*command, "--report", str(tmp_path / "r.html")])
    assert (refused.exit_code, out.exists()) == (2, False)
    assert f"a report needs {name}: pip install {name}" in refused.output
    assert RUN.invoke(app, command).exit_code == 0
    assert deepwell.load(out).num_rows == 40
    refused = RUN.invoke(app, ["report", str(out), "--out", str(tmp_path / "r.html")])
    assert refused.exit_code == 2
    assert f"a report needs {name}" in refused.output


def test_the_demonstration_needs_scikit_learn(missing, tmp_path):
    missing("sklearn")
    refused = RUN.invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert refused.exit_code == 2
    assert "the demo needs scikit-learn: pip install scikit-learn" in refused.output
