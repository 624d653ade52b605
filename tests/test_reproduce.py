"""``deepwell reproduce``: every study runs, small; a sweep that is killed goes on; rows are those of ``evaluate``."""

import inspect
import json
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from deepwell.assess.evaluate import evaluate
from deepwell.assess.small_problems import shallow
from deepwell.cli.main import app
from deepwell.cli.reproduce import ALL, reproduce
from deepwell.fits.fitted import FittedModel
from deepwell.fits.presets import make_settings
from deepwell.inference.deep_gp_posteriors import shared_theta
from deepwell.inference.driver import is_chunk_end
from deepwell.inference.registry import method_named
from deepwell.store.checkpoint import Checkpoints
from deepwell.studies import benchmark_sets, curves, gaussianity, toy, toy_problem
from deepwell.studies.curves import scored_iterations
from deepwell.studies.job import RowWriter
from deepwell.studies.options import SMOKE_SETTINGS, StudyOptions
from deepwell.studies.paper_methods import PAPER_METHODS, select_methods
from deepwell.studies.registry import STUDIES
from deepwell.studies.synthetic import synthetic_table
from deepwell.studies.uci import UCI

WITHOUT = "import sys; sys.modules.update(sklearn=None, arviz=None, blackjax=None); "
COMMAND = [sys.executable, "-c", WITHOUT + "from deepwell.cli.main import main; main()", "reproduce"]
"""Studies need none of these packages."""
KEYS = {"dataset", "method", "depth", "split", "seed", "test_log_likelihood", "rmse", "crps", "coverage_95", "seconds",
        "device", "versions", "commit", "data"}  # fmt: skip


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_everything_runs_small_and_a_second_time_has_nothing_to_do(tmp_path):
    for _ in range(2):
        result = CliRunner().invoke(app, ["reproduce", "all", "--smoke", "--out", str(tmp_path), "--quiet"])
        assert result.exit_code == 0, result.output
        for study in STUDIES:
            for ending in (".jsonl", "-smoke.md", "-smoke.png", "-smoke.svg"):
                assert (tmp_path / f"{study}{ending}").stat().st_size > 100
        written = {study: (tmp_path / f"{study}.jsonl").read_bytes() for study in STUDIES}
    assert {study: (tmp_path / f"{study}.jsonl").read_bytes() for study in STUDIES} == written
    assert set(rows_of(tmp_path / "uci.jsonl")[0]) >= KEYS
    assert "-0.552" in (tmp_path / "uci-smoke.md").read_text()


def test_the_help_names_every_study():
    arguments = inspect.signature(reproduce).parameters
    named = re.split(", | or ", arguments["study"].annotation.__metadata__[0].help.removesuffix("."))
    assert sorted(named) == sorted([*STUDIES, ALL])


def test_rows_are_those_of_evaluate(tmp_path):
    """The same splits, seeds and scores, whether the splits run one by one or as one program."""
    options = {"datasets": ["energy"], "methods": ["SGHMC DGP 2"], "splits": [1, 2], "smoke": True}
    for size in (1, 2):
        UCI.run(StudyOptions(tmp_path / str(size), group_size=size, **options))
    data = synthetic_table("energy")
    oracle = evaluate(data.X, data.y, [1, 2], preset="paper", depth=2, **SMOKE_SETTINGS)["splits"]
    for size in (1, 2):
        for ours, theirs in zip(rows_of(tmp_path / str(size) / "uci.jsonl"), oracle, strict=True):
            assert (ours["split"], ours["together"]) == (theirs["split"], size)
            for score in ("test_log_likelihood", "rmse", "crps"):
                assert ours[score] == pytest.approx(theirs[score], rel=0.02)


def test_a_sweep_that_is_killed_and_shared_loses_and_doubles_nothing(tmp_path):
    """kill -9, then Ctrl-C, then two processes at once, then the same command with nothing left to do."""
    command = [*COMMAND, "uci", "--smoke", "--out", str(tmp_path), "--datasets", "boston,energy,concrete", "--methods",
               "SGP", "--splits", "0-9", "--set", "burn_in=1500"]  # fmt: skip
    path = tmp_path / "uci.jsonl"

    def until(count):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < count):
            time.sleep(0.01)
        return process

    killed = until(2)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    first = path.read_bytes()
    interrupted = until(first.count(b"\n") + 2)
    interrupted.send_signal(signal.SIGINT)
    assert "the same command resumes from here" in interrupted.communicate()[1]
    assert interrupted.returncode == 130
    second = path.read_bytes()
    assert second.startswith(first[: first.rfind(b"\n") + 1])
    assert second.count(b"\n") < 30
    together = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in together] == [0, 0]
    assert path.read_bytes().startswith(second)
    keys = [(row["dataset"], row["split"]) for row in rows_of(path)]
    assert sorted(keys) == [(name, split) for name in ("boston", "concrete", "energy") for split in range(10)]


def test_a_group_that_is_killed_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    """Its rows are, to the bit, those of a group that was let alone."""
    arguments = ["uci", "--smoke", "--datasets", "energy", "--methods", "SGP", "--splits", "0,1", "--group-size", "2",
                 "--every", "0", "--set", "burn_in=8000"]  # fmt: skip
    process = subprocess.Popen([*COMMAND, *arguments, "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.rglob("newest.checkpoint")):
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "uci.jsonl").exists()
    restored, restore = [], Checkpoints.restore

    def watched(self, *arguments):
        run = restore(self, *arguments)
        restored.append(0 if run is None else run[0].done)
        return run

    monkeypatch.setattr(Checkpoints, "restore", watched)
    for name in ("killed", "whole"):
        result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    assert restored[0] > 0
    assert restored[1] == 0
    killed, whole = (rows_of(tmp_path / name / "uci.jsonl") for name in ("killed", "whole"))
    scores = ("split", "together", "test_log_likelihood", "rmse", "crps")
    assert [[row[name] for name in scores] for row in killed] == [[row[name] for name in scores] for row in whole]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "unknown study 'nonsense': choose from toy, cep"),
        (["uci", "--datasets", "moon"], "unknown data set 'moon': choose from boston"),
        (["uci", "--methods", "magic"], "unknown method 'magic'"),
        (["uci", "--methods", "SGP", "--depths", "2-3"], "none of SGP has a depth of 2, 3"),
        (["uci", "--splits", "1-x"], "--splits 1-x must be a number or a range"),
        (["uci", "--splits", "5-2"], "--splits 5-2 must be a number or a range from low to high"),
        (["uci", "--splits", "3-"], "--splits 3- must be a number or a range"),
        (["uci", "--depths", "²"], "--depths ² must be a number or a range"),
        (
            ["uci", "--splits", "0-99999999999"],
            "--splits 0-99999999999 must be 0 or more, and a range must have at most",
        ),
        (["mcem", "--depths", "0"], "--depths 0 must be 1 or more"),
        (["uci", "--every", "-1"], "--every -1.0 must be a number of seconds"),
        (["uci", "--preset", "moon"], "unknown preset 'moon'"),
        (["uci", "--set", "bogus=1"], "unknown option 'bogus'"),
        (["uci", "--set", "step_size=-1"], "step_size=-1 must be a positive number"),
        (
            ["uci", "--methods", "SGHMC DGP 2,SGHMC DGP 3", "--set", "width=[3]"],
            "width=(3,) has 1 entries, but 2 layers",
        ),
        (["uci", "--methods", "SGHMC DGP,SGP", "--set", "dsvi_start=10"], "dsvi_start is for sghmc"),
        (["mcem", "--depths", "2,3", "--set", "width=[3]"], "width=(3,) has 1 entries, but 2 layers"),
        (["cep", "--set", "num_inducing=[5,5]"], "num_inducing=(5, 5) has 2 entries"),
        (["uci", "--seed", "4294967295"], "seed=4294967304 must be an integer from 0 to"),
        (["uci", "--datasets", "boston,"], "--datasets boston, has an empty entry"),
        (["gaussianity", "--set", "num_samples=4"], "num_samples=4 is too few"),
        (["uci", "--set", "depth=3"], "--set depth=3: this study sets depth itself"),
        (["mcem", "--set", "inference=dsvi"], "--set inference=dsvi: this study sets inference itself"),
        (["toy", "--set", "noise_variance=0.5"], "--set noise_variance=0.5: this study sets noise_variance itself"),
        (["gaussianity", "--set", "inference=dsvi"], "this study sets inference itself"),
        (["all", "--datasets", "boston"], "--datasets is for one study"),
        (["toy", "--datasets", "foo"], "--datasets does not apply to the study toy"),
        (["toy", "--methods", "bar"], "--methods does not apply to the study toy"),
        (["toy", "--every", "1"], "--every does not apply to the study toy"),
        (["gaussianity", "--splits", "0"], "--splits does not apply to the study gaussianity"),
        (["mcem", "--group-size", "2"], "--group-size does not apply to the study mcem"),
        (["mnist", "--methods", "SGP", "--depths", "9"], "--depths does not apply to the study mnist"),
        (["mnist"], "set DEEPWELL_DATA to a folder"),
    ],
)
def test_bad_requests_end_in_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.delenv("DEEPWELL_DATA", raising=False)
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert words in result.output
    assert " rows are there already" not in result.output or words.startswith("set DEEPWELL_DATA")


def test_settings_of_a_layer_each_are_those_of_the_depth_that_runs(tmp_path):
    command = ["reproduce", "uci", "--smoke", "--methods", "SGHMC DGP 3", "--splits", "0", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*command, "--set", "width=[3,2]", "--set", "batch_size=null"])
    assert result.exit_code == 0, result.output
    settings = rows_of(tmp_path / "uci.jsonl")[0]["settings"]
    assert settings["width"] == [3, 2]
    assert "batch_size" not in settings  # that of the preset is no setting asked for


def test_all_says_once_what_all_studies_fail_of(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "all", "--set", "bogus=1", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.count("unknown option 'bogus'") == 1
    assert ", ".join(STUDIES) + ": unknown option" in result.output


def test_all_keeps_the_traceback_of_what_is_no_users_mistake(tmp_path, monkeypatch):
    def broken(options):
        raise KeyError("width")

    studies = {name: STUDIES[name]._replace(jobs=broken) for name in ("toy", "cep")}
    monkeypatch.setattr("deepwell.studies.registry.STUDIES", studies)
    result = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.count("in broken\n") == 2
    assert "toy, cep: 'width'" in result.output


def test_what_ended_a_study_is_what_the_user_sees(tmp_path, monkeypatch):
    monkeypatch.delenv("DEEPWELL_DATA", raising=False)
    monkeypatch.setitem(STUDIES, "mnist", STUDIES["mnist"]._replace(draw_page=lambda options, rows: 1 / 0))
    result = CliRunner().invoke(app, ["reproduce", "mnist", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "set DEEPWELL_DATA to a folder" in result.output


def test_methods_are_named_as_in_the_paper_and_chosen_by_family(tmp_path):
    assert PAPER_METHODS["Dec DGP 3"].settings == {"inference": "dsvi-decoupled", "depth": 3}
    assert select_methods(StudyOptions(tmp_path, methods=["DGP", "BNN"], depths=[2, 3])) == ["BNN", "DGP 2", "DGP 3"]
    assert select_methods(StudyOptions(tmp_path, methods=["SGHMC DGP 2"])) == ["SGHMC DGP 2"]
    assert select_methods(StudyOptions(tmp_path, depths=[1])) == ["BNN", "SGP", "Dec SGP"]


@pytest.mark.parametrize("noise", toy.NOISES)
def test_the_seven_points_have_two_explanations_of_one_height(noise):
    """They are mirror images, and the next maximum is far below."""
    maxima = toy.modes_first(noise)
    assert maxima.log_joint[0] == pytest.approx(maxima.log_joint[1], abs=0.01)
    assert maxima.log_joint[2] < maxima.log_joint[1] - 2.5
    np.testing.assert_allclose(maxima.hidden[0], -maxima.hidden[1, ::-1], atol=0.02)
    assert np.max(np.abs(maxima.hidden[0] - maxima.hidden[1])) > 1
    np.testing.assert_allclose(toy_problem.shares(maxima.hidden[[0, 0, 0, 1]], maxima.hidden[:2]), [0.75, 0.25])


def test_the_toys_model_is_the_one_that_fit_makes():
    member = {
        "method": "SGHMC",
        "noise_variance": 0.01,
        "seed": 0,
        "preset": "default",
        "settings": toy.TOY_SMOKE_SETTINGS,
    }
    model = toy.fit_points(member, None)
    ours, theirs = toy_problem.toy_model(0.01), model.posterior.model
    for a, b in zip(ours.prepare().layers, theirs.prepare().layers, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours.likelihood.log_noise_variance, theirs.likelihood.log_noise_variance, rtol=1e-5)


def test_the_toy_is_fitted_with_the_preset_that_its_rows_name(tmp_path, monkeypatch):
    def fit(*data, preset="default", **options):
        return Mock(spec=FittedModel, preset=preset, diagnose=lambda X: preset)

    monkeypatch.setattr(toy, "fit", fit)
    member = {"method": "SGHMC", "noise_variance": 0.01, "seed": 0, "preset": "quick", "settings": {}}
    assert toy.fit_points(member, None).preset == "quick"
    assert toy.fit_points(member, toy.fit_points(member, None)).preset == "quick"
    write = Mock(spec=RowWriter)
    toy.ROWS_BY_KIND["verdict"]([member], tmp_path, write)
    assert [call.args for call in write.call_args_list] == [(member, {"verdict": "quick"})]


def test_the_verdict_on_four_chains_names_the_modes():
    diagnosis = toy.four_chains(toy.VERDICT_NOISE, toy.VERDICT_SEED, num_samples=100)
    assert len(diagnosis.modes) == 2
    assert "in another mode" in str(diagnosis) or "the chains are in 2 modes" in str(diagnosis)


def test_draws_of_q_have_its_moments():
    member = {"method": "DSVI", "noise_variance": 0.02, "seed": 0, "preset": "default"}
    model = toy.fit_points({**member, "settings": {"burn_in": 300, "num_samples": 4000}}, None)
    drawn = toy.as_samples(model).posterior.samples
    for q, v in zip(model.posterior.belief, drawn, strict=True):
        C = np.asarray(q.cholesky())[0]
        spread = np.sqrt(np.diag(C @ C.T))
        np.testing.assert_allclose(np.mean(v[0, ..., 0], 0), q.mean[:, 0], atol=6 * np.max(spread) / np.sqrt(4000))
        np.testing.assert_allclose(np.cov(v[0, ..., 0].T), C @ C.T, atol=0.15 * np.max(spread) ** 2)


def test_inducing_outputs_are_coloured_by_the_kernel():
    """u = L v with L L' = K_ZZ, against numpy's Cholesky factor."""
    model = shallow(np.linspace(-1, 1, 5)[:, None], jitter=1e-4)
    v = np.random.default_rng(0).standard_normal((1, 3, 5)).astype(np.float32)
    u = gaussianity.inducing_outputs(shared_theta(jax.random.key(0), model, jnp.asarray(v)))
    K = np.asarray(model.layers[0].gram(), np.float64)
    L = np.linalg.cholesky(K + 1e-4 * np.mean(np.diag(K)) * np.eye(5))
    np.testing.assert_allclose(u, v[0] @ L.T, atol=1e-3)


def test_correlated_gaussian_draws_fail_the_kurtosis_test_and_independent_ones_pass():
    """The paper's test on a chain that is Gaussian by construction; lag-one correlation 0.97."""
    rng, rho = np.random.default_rng(0), 0.97
    chain = np.zeros((400, 100))
    for i in range(1, 400):
        chain[i] = rho * chain[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(100)
    assert np.median(gaussianity.autocorrelation(chain[200:])) == pytest.approx(rho, abs=0.06)
    assert np.sum(gaussianity.kurtosis_p_values(chain[200:]) < gaussianity.THRESHOLD) >= 3
    assert np.min(gaussianity.kurtosis_p_values(rng.standard_normal((200, 100)))) > gaussianity.THRESHOLD


def test_chains_that_remember_their_start_are_named():
    """Draws of chains that start at the consecutive draws of a slow chain, and have forgotten a share of them."""
    rng, rho = np.random.default_rng(0), 0.95
    starts = np.zeros((400, 100))
    for i in range(1, 400):
        starts[i] = rho * starts[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(100)
    rows = []
    for kept in (0.0, 0.6):
        draws = kept * starts[200:] + np.sqrt(1 - kept**2) * rng.standard_normal((200, 100))
        correlation = float(np.median(gaussianity.autocorrelation(draws)))
        rows.append({"dataset": f"kept {kept}", "depth": 2, "draws": gaussianity.MANY, "below_threshold": 0,
                     "autocorrelation": correlation})  # fmt: skip
    assert gaussianity.verdict(rows)[-1].endswith("not independent: kept 0.6 at depth 2.")
    assert len(gaussianity.verdict(rows[:1])) == 1


def test_a_curve_is_scored_at_ends_of_chunks():
    """As the driver tells them, for budgets and rounds of MCEM of many lengths."""
    assert scored_iterations(make_settings(burn_in=20_000)) == list(range(1_000, 20_001, 1_000))
    assert scored_iterations(make_settings(burn_in=6_000)) == list(range(500, 6_001, 500))
    assert scored_iterations(make_settings(burn_in=20)) == [20]
    assert scored_iterations(make_settings(burn_in=12_000)) == scored_iterations(
        make_settings(burn_in=12_000, inference="mcem")
    )
    some = [{"inference": name} for name in ("sghmc", "sghmc-naive", "dsvi", "dsvi-decoupled")]
    some += [{"inference": "mcem", "e_steps": steps} for steps in (7, 250, 300, 500, 5_000)]
    for options in some:
        for budget in (1, 20, 499, 500, 501, 1_250, *range(9_000, 21_000, 333), 12_000, 100_000):
            settings = make_settings(burn_in=budget, **options)
            phases = method_named(settings.inference).phases(settings.config(100))
            iterations = scored_iterations(settings)
            assert len(iterations) <= 20
            assert iterations[-1] == budget
            assert all(is_chunk_end(phases, 0, iteration) for iteration in iterations)


def test_a_curve_of_any_length_is_finished_at_once(tmp_path, monkeypatch):
    """With a fit that does nothing but end its chunks."""

    def fit(X, y, monitor, burn_in, **options):
        for end in (*range(250, burn_in, 250), burn_in):
            monitor(end, lambda: SimpleNamespace(predict_dist=lambda X: None))

    monkeypatch.setattr(curves, "fit", fit)
    none = {"test_log_likelihood": 0.0, "rmse": 1.0}
    monkeypatch.setattr(benchmark_sets.SplitData, "test_scores", lambda self, model: none)
    command = ["reproduce", "mcem", "--smoke", "--out", str(tmp_path), "--methods", "Moving Window MCEM", "--set"]
    for there, written in ((0, "12000"), (12, "12000.0")):  # one setting, however it is written
        result = CliRunner().invoke(app, [*command, f"burn_in={written}"])
        assert result.exit_code == 0, result.output
        assert f"mcem: {there} of 12 rows are there already" in result.output
    assert [row["iteration"] for row in rows_of(tmp_path / "mcem.jsonl")] == list(range(1_000, 12_001, 1_000))


def test_the_clock_of_a_curve_goes_on_at_the_pace_it_had(tmp_path, monkeypatch):
    """Killed after a chunk, before any row: what comes later has the seconds of all its iterations."""
    clock = [0.0]
    monkeypatch.setattr(curves.time, "perf_counter", lambda: clock[0])
    none = {"test_log_likelihood": 0.0, "rmse": 1.0}
    monkeypatch.setattr(benchmark_sets.SplitData, "test_scores", lambda self, model: none)
    begun = []

    def fit(X, y, monitor, checkpoint=None, **options):
        first = 500 if begun else 0
        for end in range(first + 250, 1_001, 250):
            clock[0] += 5.0
            monitor(end, lambda: SimpleNamespace(predict_dist=lambda X: None))
            if end == 750 and checkpoint is not None and not begun:  # its checkpoint is of iteration 500
                begun.append(True)
                raise KeyboardInterrupt

    monkeypatch.setattr(curves, "fit", fit)
    command = ["reproduce", "mcem", "--smoke", "--out", str(tmp_path), "--methods", "MCEM", "--set", "burn_in=1000"]
    monkeypatch.setattr(curves, "scored_iterations", lambda settings: [1_000])
    for code in (130, 0):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == code, result.output
    assert [row["seconds"] for row in rows_of(tmp_path / "mcem.jsonl")] == [pytest.approx(20.0)]


def test_ctrl_c_while_a_curves_programs_are_compiled_ends_the_study(tmp_path, monkeypatch):
    """The fit that is run for its compilation alone ends at its first look, which the signal precedes."""
    whole, fits = curves.fit, []

    def fit(*data, monitor, **options):
        def interrupted(*now):
            signal.raise_signal(signal.SIGINT)
            monitor(*now)

        fits.append(monitor)
        return whole(*data, monitor=interrupted, **options)

    monkeypatch.setattr(curves, "fit", fit)
    result = CliRunner().invoke(app, ["reproduce", "mcem", "--smoke", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert len(fits) == 1


def test_curves_of_other_sets_are_drawn_too(tmp_path):
    """And of other devices, whose seconds are others."""
    common = {"method": "MCEM", "seed": 0, "test_log_likelihood": 0.0, "rmse": 1.0}
    rows = [
        {**common, "dataset": name, "depth": depth, "split": split, "device": device, "iteration": i, "seconds": i}
        for name, depth, split, device in (
            ("boston", 2, 0, "cpu"), ("kin8nm", 3, 0, "cpu"), ("kin8nm", 2, 1, "cpu"), ("boston", 2, 0, "a GPU"),
        )
        for i in (500, 1_000)
    ]  # fmt: skip
    made = curves.draw_page(curves.MCEM_COMPARISON, StudyOptions(tmp_path), rows)
    assert [p.strip("# \n") for p in made.paragraphs if p.startswith("## ")] == [
        "kin8nm, depth 2, split 1, cpu", "boston, depth 2, split 0, a GPU", "boston, depth 2, split 0, cpu",
        "kin8nm, depth 3, split 0, cpu",
    ]  # fmt: skip
    assert sum(p.startswith("Paper: ") for p in made.paragraphs) == 1  # of the paper's own set and depth alone
    assert len(made.figure.axes) == 8


@pytest.mark.parametrize("study", ["uci", "cep"])
def test_splits_for_tuning_have_rows_and_no_page(study, tmp_path):
    command = ["reproduce", study, "--smoke", "--out", str(tmp_path), "--methods", "SGP"]
    result = CliRunner().invoke(app, [*command, "--splits", "100"])
    assert result.exit_code == 0
    assert "splits from 10 on are for tuning" in result.output
    assert [row["split"] for row in rows_of(tmp_path / f"{study}.jsonl")] == [100]
    assert not list(tmp_path.glob("*.md"))
