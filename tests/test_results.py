"""Rows of studies: whole, once, and shared by processes; ours beside the paper's."""

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from matplotlib.figure import Figure as EmptyFigure

from deepwell.data.splits import split_by_group
from deepwell.errors import InputError
from deepwell.studies.benchmark_sets import UCI_SETS
from deepwell.studies.comparison import Summary, summarise, table_beside_paper, z_value
from deepwell.studies.job import Job
from deepwell.studies.options import CONDITIONS, StudyDefaults, StudyOptions
from deepwell.studies.paper_methods import DEFAULT_METHODS, PAPER_METHODS
from deepwell.studies.paper_scores import PaperScore, paper_results, paper_score
from deepwell.studies.provenance import commit, data_hash
from deepwell.studies.ranks import average_ranks, ranks_beside_paper, ranks_table
from deepwell.studies.row_store import RowStore
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage, write_page
from deepwell.studies.sweep import sweep
from deepwell.studies.uci import runs_table


def row(split, score=0.0):
    return {"dataset": "energy", "split": split, "score": score}


def store(folder):
    return RowStore(folder, "uci", ("dataset", "split"))


def test_rows_are_written_once_and_read_back(tmp_path):
    rows = store(tmp_path)
    assert rows.rows() == []
    assert rows.append(row(0, 1.5))
    assert not rows.append(row(0, 2.5))
    assert rows.append(row(1))
    assert store(tmp_path).rows() == [row(0, 1.5), row(1)]
    assert rows.finished() == {('"energy"', "0"), ('"energy"', "1")}


@pytest.mark.parametrize(("tail", "kept"), [(b'{"dataset": "energy", "spl', 1), (json.dumps(row(7)).encode(), 2)])
def test_a_torn_last_line_is_no_row_and_does_no_harm(tmp_path, tail, kept):
    """A row that lacks nothing but the end of its line is whole."""
    rows = store(tmp_path)
    rows.append(row(0))
    with rows.path.open("ab") as file:
        file.write(tail)
    assert len(rows.rows()) == kept
    rows.append(row(1))
    assert [r["split"] for r in rows.rows()] == ([0, 1] if kept == 1 else [0, 7, 1])
    assert all(json.loads(line) for line in rows.path.read_text().splitlines())


@pytest.mark.parametrize("locked", [True, False])
def test_processes_that_write_at_once_write_each_row_once(locked, tmp_path):
    """Both read, wait until the other has read, and write: without the lock every row is there twice."""
    code = textwrap.dedent("""
        import contextlib, sys, time
        from pathlib import Path
        from deepwell.studies import row_store

        folder, mine, locked = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
        if not locked:
            row_store.claimed = lambda *arguments, **options: contextlib.nullcontext(True)

        def meet(where, seconds):
            (folder / f"{mine}-{where}").touch()
            until = time.monotonic() + seconds
            while not (folder / f"{1 - mine}-{where}").exists() and time.monotonic() < until:
                time.sleep(0.001)

        store = row_store.RowStore(folder, "uci", ("split",))
        finished = store.finished
        store.finished = lambda: (finished(), meet(i, 0.3))[0]
        meet("start", 60)
        for i in range(5):
            store.append({"split": i, "long": "x" * 5000})
    """)
    arguments = [[sys.executable, "-c", code, str(tmp_path), str(i), str(locked)] for i in range(2)]
    processes = [subprocess.Popen(each) for each in arguments]
    assert [process.wait() for process in processes] == [0, 0]
    splits = [row["split"] for row in RowStore(tmp_path, "uci", ("split",)).rows()]
    assert (sorted(splits) == list(range(5))) == locked


def test_a_folder_that_goes_is_made_again_and_a_file_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    rows = store(tmp_path / "results")
    rows.append(row(0))
    shutil.rmtree(tmp_path / "results")
    assert rows.append(row(1))
    assert rows.rows() == [row(1)]

    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"cannot write to .*uci\.jsonl: No space left"):
            rows.append(row(2))
    rows.path.unlink()
    rows.path.mkdir()
    with pytest.raises(InputError, match=r"cannot read .*uci\.jsonl: Is a directory"):
        rows.append(row(2))


def test_a_job_that_fell_goes_on_with_its_members_and_doubles_nothing(tmp_path):
    """The group that a checkpoint belongs to is the one that was begun, not what is left of it."""
    rows, seen = store(tmp_path), []

    def work(members, folder, write):
        seen.append([member["split"] for member in members])
        write(members[0], {"score": 0.0})
        if len(seen) == 1:
            raise RuntimeError("the process died here")
        for member in members[1:]:
            write(member, {"score": 1.0})

    def another(split):
        return {"dataset": "energy", "split": split}

    said = []
    job = Job("group", [another(0), another(1), another(2)], work, at_once=True)
    with pytest.raises(RuntimeError):
        sweep(rows, [job], said.append, str)
    assert [r["split"] for r in rows.rows()] == [0]
    sweep(rows, [job], said.append, str)
    assert seen == [[0, 1, 2], [0, 1, 2]]
    assert [(r["split"], r["score"]) for r in rows.rows()] == [(0, 0.0), (1, 1.0), (2, 1.0)]
    sweep(rows, [job], said.append, str)
    assert len(seen) == 2
    assert said[-1] == "uci: 3 of 3 rows are there already"
    assert "[3/3]" in said[-2]
    assert not [path for path in rows.work_folder.iterdir() if path.is_dir()]


def test_a_job_that_leaves_rows_out_is_an_error_and_keeps_its_folder(tmp_path):
    rows = store(tmp_path)
    members = [{"dataset": "energy", "split": split} for split in range(3)]

    def work(members, folder, write):
        (folder / "checkpoint").touch()
        write(members[0], {"score": 0.0})

    def whole(members, folder, write):
        write(members[0], {"score": 0.0})

    jobs = [Job("group", members[:2], work), Job("alone", members[2:], whole)]
    with pytest.raises(InputError, match="uci: jobs ended without writing 1 of their rows"):
        sweep(rows, jobs, lambda line: None, str)
    assert [row["split"] for row in rows.rows()] == [0, 2]
    assert len(list(rows.work_folder.glob("*/checkpoint"))) == 1


def test_a_sweep_with_nothing_to_do_reads_the_rows_once(tmp_path, monkeypatch):
    rows, reads = store(tmp_path), []
    members = [{"dataset": "energy", "split": split} for split in range(10)]
    for member in members:
        rows.append(member)
    whole = RowStore.rows
    monkeypatch.setattr(RowStore, "rows", lambda self: reads.append(1) or whole(self))
    sweep(rows, [Job(str(member["split"]), [member], pytest.fail) for member in members], lambda line: None, str)
    assert len(reads) == 1


def test_the_error_of_a_sweep_is_not_hidden_by_that_of_its_page(tmp_path):
    said, finished = [], Study("uci", ("split",), StudyDefaults("paper"), (), lambda options: [], draw_nothing, str)
    options = StudyOptions(tmp_path, tell=said.append)
    conditions = options.for_study(finished.defaults).conditions()
    RowStore(tmp_path, "uci", finished.row_key).append({"split": 1, "seed": 0, **conditions})

    def run(members, folder, write):
        raise MemoryError("too large")

    with pytest.raises(MemoryError, match="too large"):
        finished._replace(jobs=lambda options: [Job("group", [{"split": 0}], run)]).run(options)
    assert said[-1] == "uci: no table and figure of the rows so far: nothing to draw"
    with pytest.raises(ValueError, match="nothing to draw"):
        finished.run(options)


def draw_nothing(options, rows):
    raise ValueError("nothing to draw")


def test_members_that_need_no_others_are_not_made_again(tmp_path):
    rows, seen = store(tmp_path), []

    def work(members, folder, write):
        for member in members:
            seen.append(member["split"])
            write(member, {"score": 0.0})
            if len(seen) == 2:
                raise KeyboardInterrupt

    job = Job("one by one", [{"dataset": "energy", "split": split} for split in range(4)], work)
    with pytest.raises(KeyboardInterrupt):
        sweep(rows, [job], lambda line: None, str)
    sweep(rows, [job], lambda line: None, str)
    assert seen == [0, 1, 2, 3]


def test_a_job_that_fails_keeps_only_its_kind_from_running(tmp_path):
    rows, said = store(tmp_path), []

    def job(split, trouble=None, kind=""):
        def work(members, folder, write):
            if trouble:
                raise trouble
            write(members[0], {"score": 0.0})

        return Job(f"split {split}", [{"dataset": "energy", "split": split}], work, kind=kind)

    jobs = [job(0, MemoryError("too large")), job(1), job(2, ValueError()), job(3)]
    with pytest.raises(InputError, match=r"^split 0 failed: too large; split 2 failed: ValueError$"):
        sweep(rows, jobs, said.append, str)
    assert [row["split"] for row in rows.rows()] == [1, 3]
    assert "uci: split 0 failed: too large" in said
    alike = [job(i, InputError("no such set"), kind) for kind, splits in (("a", (4, 5)), ("b", (6, 7))) for i in splits]
    with pytest.raises(InputError, match=r"^no such set$"):
        sweep(rows, [*alike, job(8, kind="c")], said.append, str)
    assert [row["split"] for row in rows.rows()] == [1, 3, 8]
    assert [line for line in said if "no such set" in line] == [
        "uci: split 4 failed: no such set; the other jobs of a are skipped",
        "uci: split 6 failed: no such set; the other jobs of b are skipped",
    ]


def test_rows_that_are_there_are_not_scored_again(tmp_path):
    """A group that was killed while it was scored goes on with the splits that have no row."""
    rows, scored = store(tmp_path), []
    members = [{"dataset": "energy", "split": split} for split in range(3)]

    def work(members, folder, write):
        for member in members:
            if write.wants(member):
                scored.append(member["split"])
                write(member, {"score": 0.0})
                if len(scored) == 2:
                    raise KeyboardInterrupt

    job = Job("group", members, work, at_once=True)
    with pytest.raises(KeyboardInterrupt):
        sweep(rows, [job], lambda line: None, str)
    sweep(rows, [job], lambda line: None, str)
    assert scored == [0, 1, 2]


def test_the_time_left_is_that_of_the_work_left(tmp_path, monkeypatch):
    """Groups whose rows come together, on a clock of our own: ten minutes a group."""
    now, said = [0.0], []
    monkeypatch.setattr("deepwell.studies.sweep_progress.time.monotonic", lambda: now[0])

    def work(members, folder, write):
        now[0] += 600.0
        for member in members:
            write(member, {"score": 0.0})

    jobs = [Job(str(g), [{"dataset": str(g), "split": i} for i in range(10)], work, at_once=True) for g in range(3)]
    sweep(store(tmp_path), jobs, said.append, lambda row: "row")
    assert said[1] == "[1/30] row; 20.0 min left"
    assert said[10] == "[10/30] row; 20.0 min left"
    assert said[11] == "[11/30] row; 10.0 min left"
    assert said[-1] == "[30/30] row; 0 s left"


def test_rows_made_under_other_conditions_have_pages_of_their_own(tmp_path):
    rows, drawn = RowStore(tmp_path, "uci", ("split", "seed", *CONDITIONS)), []
    default = StudyOptions(tmp_path).for_study(StudyDefaults("paper"))
    runs = [default, dataclasses.replace(default, settings={"learning_rate": 0.5}),
            dataclasses.replace(default, seed=3), dataclasses.replace(default, smoke=True),
            StudyOptions(tmp_path, preset="best").for_study(StudyDefaults("paper"))]  # fmt: skip
    for number, options in enumerate(runs):
        for split in range(number + 1):
            rows.append({"split": split, **options.row()})

    def draw(matching):
        drawn.append(len(matching))
        return StudyPage(["# Title\n", "Text.\n"], EmptyFigure())

    for options in runs:
        write_page(rows, options, draw)
    assert drawn == [1, 2, 3, 4, 5]
    names = ["uci", "uci-learning_rate-0.5", "uci-seed-3", "uci-smoke", "uci-best"]
    pages = [dataclasses.replace(default, settings=s).page_path("uci").name for s in ({"x": 1}, {"x": -1},
             {"x": [1] * 130}, {"kernel": "rbf+linear"}, {"kernel": "rbf*linear"}, {"x": 1.0})]  # fmt: skip
    assert pages[:2] == ["uci-x-1", "uci-x--1"]
    assert len(set(pages)) == 5
    assert pages[5] == pages[0]
    assert max(map(len, pages)) < 60
    assert {path.name for path in tmp_path.glob("uci*")} == {"uci.jsonl"} | {
        f"{name}.{kind}" for name in names for kind in ("md", "png", "svg")
    }
    text = (tmp_path / "uci-learning_rate-0.5.md").read_text()
    assert text == "# Title\n\nMade with preset paper, learning_rate=0.5.\n\nText.\n"


def test_a_job_in_other_hands_is_left_alone(tmp_path):
    rows = store(tmp_path)

    def work(members, folder, write):
        again = sweep(rows, [job], lambda line: None, str)
        assert again == [job]
        write(members[0], {"score": 0.0})

    job = Job("group", [{"dataset": "energy", "split": 0}], work)
    assert sweep(rows, [job], lambda line: None, str) == []
    assert len(rows.rows()) == 1


def test_z_is_the_distance_in_standard_errors_of_both_means():
    assert z_value(-0.5, 10, PaperScore(-0.6, 0.1)) == pytest.approx(0.1 / (0.1 * np.sqrt(0.2)))
    assert z_value(1.0, 5, PaperScore(2.0, 0.5)) == pytest.approx(-1 / (0.5 * np.sqrt(0.3)))
    assert z_value(1.0, 5, PaperScore(2.0)) is None
    assert z_value(1.0, 5, None) is None


def test_what_has_been_run_is_counted_and_what_has_not_is_named():
    cells = {("energy", "SGP"): Summary(0.0, 1.0, 10), ("boston", "SGHMC DGP 3"): Summary(0.0, 1.0, 4)}
    *_, first, second, _, left, _ = runs_table(cells).split("\n")
    assert first.split(" | ")[:3] == ["| SGP", "-", "10"]
    assert second.split(" | ")[:3] == ["| SGHMC DGP 3", "4", "-"]
    assert set(left.removeprefix("Not begun: ").removesuffix(".").split(", ")) == set(DEFAULT_METHODS) - {
        "SGP",
        "SGHMC DGP 3",
    }


def test_ranks_count_sets_that_all_methods_have():
    def runs(**means):
        return [{"dataset": name[0], "method": name[2:], "split": i, "x": mean + i} for name, mean in means.items()
                for i in range(2)]  # fmt: skip

    rows = runs(a_x=1.0, a_y=2.0, b_x=3.0, b_y=1.0, c_x=0.0, c_y=9.0, d_x=1.0)
    std = np.sqrt(2) / 3
    of_both = {"x": (pytest.approx(5 / 3), pytest.approx(std)), "y": (pytest.approx(4 / 3), pytest.approx(std))}
    assert average_ranks(rows, "x") == (of_both, {"a": 2, "b": 2, "c": 2}, ())
    assert average_ranks([*rows, *runs(a_seldom=5.0)], "x") == (of_both, {"a": 2, "b": 2, "c": 2}, ("seldom",))
    often = average_ranks([*rows, *runs(a_often=5.0, b_often=0.0)], "x")
    assert (often.splits, often.by_method["often"]) == ({"a": 2, "b": 2}, (2.0, 1.0))
    assert average_ranks(runs(a_x=1.0, b_y=1.0, b_x=0.0), "x").splits == {"b": 2}
    assert average_ranks([], "x") == ({}, {}, ())


def test_the_papers_ranks_are_of_its_means_over_the_same_sets_and_methods():
    """boston: SGP is at -2.462, SGHMC DGP 2 at -2.572; energy: -0.686 and -0.552."""
    ours = {("boston", "SGP"): 1.0, ("boston", "SGHMC DGP 2"): 2.0, ("energy", "SGP"): 1.0,
            ("energy", "SGHMC DGP 2"): 2.0, ("boston", "SGHMC-bayes DGP 2"): 3.0,
            ("energy", "SGHMC-bayes DGP 2"): 3.0}  # fmt: skip
    rows = [{"dataset": s, "method": m, "split": 0, "test_log_likelihood": x} for (s, m), x in ours.items()]
    here, paper = ranks_beside_paper(rows, "test_log_likelihood")
    assert here.by_method == {"SGP": (2.0, 0.0), "SGHMC DGP 2": (1.0, 0.0)}
    assert paper.by_method == {"SGP": (1.5, 0.5), "SGHMC DGP 2": (1.5, 0.5)}
    text = ranks_table(rows, "test_log_likelihood")
    assert "| SGHMC DGP 2 | 2.00 ± 0.00 | 1.00 ± 0.00 | 1.50 ± 0.50 |" in text
    assert "| SGHMC-bayes DGP 2 | 1.00 ± 0.00 |  |  |" in text


def test_ranks_beside_paper_leave_out_what_is_not_comparable():
    """On naval the paper's columns were others: only our own rank counts it."""
    ours = {("boston", "SGP"): 1.0, ("boston", "BNN"): 2.0, ("naval", "SGP"): 2.0, ("naval", "BNN"): 1.0}
    rows = [{"dataset": s, "method": m, "split": 0, "test_log_likelihood": x} for (s, m), x in ours.items()]
    here, paper = ranks_beside_paper(rows, "test_log_likelihood")
    assert here.splits == paper.splits == {"boston": 1}
    assert here.by_method == {"BNN": (1.0, 0.0), "SGP": (2.0, 0.0)}
    assert "| BNN | 1.50 ± 0.50 | 1.00 ± 0.00 | 2.00 ± 0.00 |" in ranks_table(rows, "test_log_likelihood")


def test_ranks_compare_methods_on_the_splits_that_all_have():
    """x beats y on every split that both have; split 2, a hard one, only x has."""
    values = {("x", 0): 1.0, ("x", 1): 1.0, ("x", 2): -9.0, ("y", 0): 0.0, ("y", 1): 0.0}
    rows = [{"dataset": "a", "method": m, "split": i, "score": value} for (m, i), value in values.items()]
    assert average_ranks(rows, "score") == ({"x": (1.0, 0.0), "y": (2.0, 0.0)}, {"a": 2}, ())


def test_the_table_shows_the_paper_and_marks_what_falls_short():
    common = {"dataset": "energy", "method": "SGHMC DGP 2"}
    rows = [
        {**common, "test_log_likelihood": -1.0, "seconds": 3.0, "device": "cpu"},
        {**common, "test_log_likelihood": -1.2, "seconds": 5.0, "device": "cpu"},
        {**common, "dataset": "boston", "test_log_likelihood": -2.0, "seconds": 1.0, "device": "a GPU"},
        {**common, "dataset": "boston", "test_log_likelihood": -2.0, "seconds": 0.2, "device": "a GPU", "together": 10},
    ]
    table = table_beside_paper(rows, {"test_log_likelihood": "{:.2f}".format}, str)
    z = (-1.1 + 0.552) / (0.189 * np.sqrt(1 / 2 + 1 / 10))
    assert "| z | seconds, a GPU | seconds, a GPU, in groups | seconds, cpu |" in table  # unlike times have no mean
    assert f"| energy | SGHMC DGP 2 | 2 | -1.10 ± 0.14 | -0.55 ± 0.19 | **{z:+.1f}** |  |  | 4 |" in table
    assert "| boston | SGHMC DGP 2 | 2 | -2.00 ± 0 |" in table
    assert summarise(rows, "rmse") == {}


def test_a_spread_is_in_the_unit_of_its_mean():
    rows = [{"dataset": "mnist", "method": "SGP", "accuracy": x, "device": "cpu"} for x in (0.97, 0.98)]
    assert "| mnist | SGP | 2 | 97.50% ± 0.71% |" in table_beside_paper(rows, {"accuracy": "{:.2%}".format}, str)


def test_published_figures_are_those_of_the_paper_for_methods_we_know():
    scores = paper_results()["test_log_likelihood"]
    assert paper_score("test_log_likelihood", "boston", "SGHMC DGP 2") == PaperScore(-2.572, 0.303)
    assert paper_score("accuracy", "mnist", "Dec DGP 3").mean == 0.981
    assert paper_score("test_log_likelihood", "flights", "SGP") is None
    assert set(UCI_SETS) - {"flights"} <= set(scores)
    assert {method for name in UCI_SETS if name in scores for method in scores[name]} <= set(PAPER_METHODS)
    assert "Havasi" in paper_results()["about"]


def test_a_split_by_group_keeps_days_together():
    days = np.random.default_rng(0).integers(0, 50, 1000)
    train, test = split_by_group(days)
    assert not set(days[train]) & set(days[test])
    assert len(set(days[train])) == 40
    assert sorted([*train, *test]) == list(range(1000))
    np.testing.assert_array_equal(split_by_group(days)[0], train)


def test_where_a_row_comes_from(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    assert data_hash(X, y) != data_hash(X, y + 1) != data_hash(X + 1, y + 1)
    assert data_hash(X, np.array(["a", "b", "c"])) != data_hash(X, np.array(["a", "b", "d"]))
    inside = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=os.path.dirname(__file__))
    if inside.returncode == 0:
        assert inside.stdout.startswith(str(commit()).rstrip("+"))
