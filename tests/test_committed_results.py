"""What is committed under ``results``: no row doubled, every score a number, every table that of its rows."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest

from deepwell.studies.options import StudyOptions
from deepwell.studies.registry import STUDIES

RESULTS = Path(__file__).resolve().parents[1] / "results"
PAGES = {
    "uci": ("uci", {}),
    "uci-default": ("uci", {"preset": "default"}),
    "toy": ("toy", {}),
    "gaussianity": ("gaussianity", {}),
    "mcem": ("mcem", {}),
    "runtime": ("runtime", {}),
    "runtime-burn_in-5000": ("runtime", {"settings": {"burn_in": 5000}}),
    "mnist": ("mnist", {}),
    "cep": ("cep", {}),
}

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="no results beside the tests")


def test_every_study_and_page_is_looked_at():
    assert {path.stem for path in RESULTS.glob("*.jsonl")} == set(STUDIES) == {study for study, _ in PAGES.values()}
    assert {path.stem for path in RESULTS.glob("*.md")} >= set(PAGES)


@pytest.mark.parametrize("study", STUDIES)
def test_no_row_is_doubled_and_every_score_is_a_number(study):
    rows = [json.loads(line) for line in (RESULTS / f"{study}.jsonl").read_text().splitlines()]
    counted = Counter(json.dumps([row.get(name) for name in STUDIES[study].row_key]) for row in rows)
    assert max(counted.values()) == 1
    for row in rows:
        assert row["versions"]
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_rows(name, tmp_path, monkeypatch):
    study, options = PAGES[name]
    shutil.copy(RESULTS / f"{study}.jsonl", tmp_path)
    monkeypatch.setattr("deepwell.studies.study.sweep", lambda *arguments: [])
    monkeypatch.setattr("deepwell.studies.study_page.save_figure", lambda figure, path: None)
    STUDIES[study].run(StudyOptions(tmp_path, **options))
    assert (tmp_path / f"{name}.md").read_text() == (RESULTS / f"{name}.md").read_text()
