"""What a fit tells while it runs: events, the CSV log, and which kind of bar shows them."""

import copy
import sys
import types

import numpy as np
import pandas as pd
import pytest
from problems import Crash, crash_at
from typer.testing import CliRunner

import deepwell
from deepwell import CsvLog, DeepGPRegressor, Event, InputError
from deepwell.cli.main import app
from deepwell.fits import progress
from deepwell.fits.events import event_reporter

QUICK = {"preset": "quick", "num_inducing": 8, "burn_in": 600, "num_samples": 40, "spacing": 10}
RUN = CliRunner()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)


@pytest.fixture(scope="module")
def watched(table, tmp_path_factory):
    """(model, events, log) of one fit."""
    path, seen = tmp_path_factory.mktemp("log") / "trace.csv", []
    return deepwell.fit(*table, callbacks=[seen.append, CsvLog(path)], **QUICK), seen, path


def test_events_are_the_trace_of_the_fit(watched):
    model, seen, _ = watched
    assert [(event.done, event.log_likelihood) for event in seen] == list(model.trace)
    assert [event.phase for event in seen] == ["burn-in"] * 3 + ["sampling"] * 2
    assert {event.total for event in seen} == {1_000}
    assert seen[0].rate is None
    seconds = [event.seconds for event in seen]
    assert seconds == sorted(seconds)
    assert 0.0 < seconds[-1] <= model.seconds
    expected = (seen[-1].done - seen[0].done) / (seconds[-1] - seconds[0])
    assert seen[-1].rate == pytest.approx(expected)


def test_the_rate_leaves_out_the_compilation(monkeypatch):
    clock = iter([0.0, 10.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    seen = []
    announce = event_reporter([seen.append], log_unit=2.0)
    announce("burn-in", 250, 1_000, 1.0)
    announce("burn-in", 500, 1_000, 1.5)
    assert seen == [Event("burn-in", 250, 1_000, -1.0, 10.0, None), Event("burn-in", 500, 1_000, -0.5, 12.0, 125.0)]


def test_the_log_holds_the_events(watched):
    _, seen, path = watched
    pd.testing.assert_frame_equal(pd.read_csv(path), pd.DataFrame(seen), check_exact=False)


def test_a_fit_whose_callback_raises_goes_on_in_its_log_from_its_checkpoint(watched, table, tmp_path):
    model, seen, _ = watched
    log = tmp_path / "trace.csv"
    with pytest.raises(Crash):
        deepwell.fit(
            *table, checkpoint=tmp_path / "run", callbacks=[CsvLog(log, tmp_path / "run"), crash_at(600)], **QUICK
        )
    assert pd.read_csv(log)["done"].tolist() == [250, 500, 600]
    log.write_text(log.read_text() + "sampling,8")  # killed while it wrote
    again, going_on = [], CsvLog(log, tmp_path / "run")
    resumed = deepwell.fit(*table, checkpoint=tmp_path / "run", callbacks=[going_on, again.append], **QUICK)
    assert [event.done for event in again] == [600, 850, 1_000]  # the chunk that raised, and those after it
    np.testing.assert_array_equal(resumed.predict(table[0]), model.predict(table[0]))
    columns = ["phase", "done", "total", "log_likelihood"]
    pd.testing.assert_frame_equal(pd.read_csv(log)[columns], pd.DataFrame(seen)[columns])


def test_a_new_fit_starts_its_log_anew_and_other_files_are_refused(tmp_path):
    log = CsvLog(tmp_path / "trace.csv")
    for event in (Event("burn-in", 5, 10, 0.5, 1.0, None), Event("sampling", 10, 10, 0.6, 2.0, 5.0)):
        log(event)
    log(Event("burn-in", 5, 10, 0.7, 1.0, None))
    assert pd.read_csv(tmp_path / "trace.csv")["log_likelihood"].tolist() == [0.7]
    CsvLog(tmp_path / "trace.csv")(Event("burn-in", 8, 20, 0.9, 1.0, None))  # another fit: its total differs
    assert pd.read_csv(tmp_path / "trace.csv")["log_likelihood"].tolist() == [0.9]
    CsvLog(tmp_path / "trace.csv")(Event("burn-in", 10, 20, 0.4, 1.0, None))  # and another: its first chunk is longer
    assert pd.read_csv(tmp_path / "trace.csv")["log_likelihood"].tolist() == [0.4]
    (tmp_path / "prices.csv").write_text("a,b\n1,2\n")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\n")
    for name in ("prices", "binary"):
        with pytest.raises(InputError, match=rf"{name}\.csv exists and is not the log of a fit"):
            CsvLog(tmp_path / f"{name}.csv")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        CsvLog(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        CsvLog(tmp_path / "nowhere" / "trace.csv")


@pytest.mark.filterwarnings("error")
def test_a_full_disk_costs_lines_of_the_log_and_not_the_fit(tmp_path, monkeypatch):
    log = CsvLog(tmp_path / "trace.csv")
    log(Event("burn-in", 5, 20, 0.5, 1.0, None))

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.open", full)
        with pytest.warns(UserWarning, match=r"cannot write the log: .*No space left"):
            log(Event("burn-in", 10, 20, 0.6, 2.0, 5.0))
        log(Event("sampling", 15, 20, 0.7, 3.0, 5.0))  # warns no more
    log(Event("sampling", 20, 20, 0.8, 4.0, 5.0))
    assert pd.read_csv(tmp_path / "trace.csv")["done"].tolist() == [5, 20]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "torn",
    [
        "burn-in,1",
        "burn-in,10,20,-1.0,2.",
        "burn-in,1burn-in,10,20,-1.0",
        "burn-in,1burn-in,10,20,-1.0,2.0,",
        "burn-in,10,20,-1.0,2.burn-in,15,20,-1.0,2.0,\r\n",
    ],
)
def test_half_a_line_is_neither_joined_nor_kept(tmp_path, torn):
    path, run = tmp_path / "trace.csv", tmp_path / "run"
    log = CsvLog(path, run)
    log(Event("burn-in", 5, 20, 0.5, 1.0, None))
    path.write_bytes(path.read_bytes() + torn.encode())
    if not torn.endswith("\n"):
        log(Event("burn-in", 15, 20, 0.7, 3.0, 5.0))
        assert path.read_text().splitlines()[-2:] == [torn, "burn-in,15,20,0.7,3.0,5.0"]
    run.mkdir()
    (run / "newest.checkpoint").touch()
    CsvLog(path, run)(Event("sampling", 20, 20, 0.8, 1.0, None))
    assert pd.read_csv(path)["done"].tolist() == ([5, 20] if torn.endswith("\n") else [5, 15, 20])


@pytest.mark.filterwarnings("error")
def test_a_folder_that_goes_away_costs_the_log_and_not_the_fit(tmp_path):
    (tmp_path / "logs").mkdir()
    log = CsvLog(tmp_path / "logs" / "trace.csv")
    (tmp_path / "logs").rmdir()
    with pytest.warns(UserWarning, match="cannot write the log: "):
        log(Event("burn-in", 5, 20, 0.5, 1.0, None))
    log(Event("burn-in", 10, 20, 0.6, 2.0, 5.0))  # warns no more
    (tmp_path / "logs").mkdir()
    log(Event("sampling", 15, 20, 0.7, 3.0, 5.0))
    log(Event("sampling", 20, 20, 0.8, 4.0, 5.0))
    assert pd.read_csv(log.path)["done"].tolist() == [15, 20]


def test_what_is_no_callback_is_refused(table):
    with pytest.raises(InputError, match=r"callbacks: 'trace\.csv' is not a function"):
        deepwell.fit(*table, callbacks=["trace.csv"])


def test_estimators_take_callbacks_and_can_be_cloned_with_them(table, tmp_path):
    from sklearn.base import clone

    seen = []
    options = {"preset": "quick", "n_inducing": 8, "burn_in": 600, "n_samples": 40}
    estimator = clone(DeepGPRegressor(callbacks=[lambda event: seen.append(event.done)], random_state=0, **options))
    estimator.fit(*table)
    assert seen == [250, 500, 600, 850, 1_000]
    assert copy.deepcopy(CsvLog(tmp_path / "trace.csv")).path == tmp_path / "trace.csv"


def test_the_command_line_logs_and_overwrites_no_log(table, tmp_path):
    X, y = table
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    log = tmp_path / "trace.csv"
    command = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--preset", "quick", "--quiet", "--log", str(log)]
    command += [word for name, value in QUICK.items() if name != "preset" for word in ("--set", f"{name}={value}")]
    run = ["--checkpoint", str(tmp_path / "run")]
    result = RUN.invoke(app, [*command, "--out", str(tmp_path / "a.deepwell"), *run])
    assert result.exit_code == 0, result.output
    assert pd.read_csv(log)["done"].tolist() == [250, 500, 600, 850, 1_000]
    again = RUN.invoke(app, [*command, "--out", str(tmp_path / "b.deepwell")])
    assert again.exit_code == 2
    assert "trace.csv exists" in again.output
    assert RUN.invoke(app, [*command, "--out", str(tmp_path / "b.deepwell"), *run]).exit_code == 0  # it resumes


class Shown:
    """Stands for IPython's display, and the handle it gives."""

    def __init__(self):
        self.texts = []

    def display(self, text, display_id):
        assert display_id
        self.texts.append(text)
        return self

    def update(self, text):
        self.texts.append(text)


@pytest.fixture
def ipython(monkeypatch):
    """A kernel of Jupyter, as far as deepwell looks at it."""
    shown, shell = Shown(), types.SimpleNamespace(kernel=object())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = str, shown.display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown, shell


EVENTS = [Event("burn-in", 250, 1_000, -1.25, 3.0, None), Event("sampling", 1_000, 1_000, -0.5, 6.0, 250.0)]


def shown_by(verbose=True):
    with progress.progress_bars(verbose) as bars:
        for bar in bars:
            for event in EVENTS:
                bar(event)
    return len(bars)


def test_a_notebook_has_a_bar_that_updates_itself(ipython, capsys):
    shown, _ = ipython
    assert shown_by() == 1
    first, middle, last = shown.texts
    assert "compiling" in first
    assert "value='250' max='1000'" in middle
    assert "- it/s, - s left, log-likelihood -1.250" in middle
    assert "sampling 1000/1000, 250 it/s, 0 s left, log-likelihood -0.500" in last
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("where", ["IPython's terminal", "no IPython", "quiet"])
def test_elsewhere_there_are_plain_lines_or_nothing(ipython, monkeypatch, capsys, where):
    shown, shell = ipython
    if where == "IPython's terminal":
        shell.kernel = None
    elif where == "no IPython":
        monkeypatch.delitem(sys.modules, "IPython")
    assert shown_by(verbose=where != "quiet") == (0 if where == "quiet" else 1)
    assert shown.texts == []
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (0 if where == "quiet" else 2)
    assert all("it/s" in line for line in lines)


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    assert shown_by() == 1
    said = capsys.readouterr().err
    assert "log-likelihood -0.500" in said
    assert "━" in said
    assert "it/s, 0 s left" not in said
