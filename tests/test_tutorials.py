"""Every tutorial runs, in seconds, and what it tells its reader comes true."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
CLAIMS = {
    "1_first_fit": lambda found: found["error"] < 0.5 * found["y"].std() and found["inside"] > 0.7,
    "2_reading_the_diagnostics": lambda found: (
        found["events"][-1].done == found["events"][-1].total
        and found["verdict"].num_chains == 2
        and Path("report.html").read_text().startswith("<!doctype html>")
    ),
    "3_choosing_depth": lambda found: found["jump"].enough == 2 and found["wave"].enough == 1,
    "4_classification": lambda found: found["truly_right"] > 0.85 and found["model"].classes == ("inside", "outside"),
    "5_resuming": lambda found: found["same"] and found["done"][0] == 1_000 and found["trace"]["done"].is_unique,
    "6_many_chains_and_gpu": lambda found: (found["chains"], found["draws"]) == (4, 30),
}


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_tutorial_runs_and_keeps_its_word(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = {"__name__": "tutorial"}
    exec(compile((FOLDER / f"{name}.py").read_text(), f"{name}.py", "exec"), found)
    assert CLAIMS[name](found)
    if "plt" in found:
        found["plt"].close("all")


def test_there_are_no_other_tutorials_and_their_links_lead_somewhere():
    paths = sorted(FOLDER.glob("*.py"))
    assert [path.stem for path in paths] == sorted(CLAIMS)
    for path in paths:
        text = path.read_text()
        assert text.startswith("# %% [markdown]\n# # ")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
