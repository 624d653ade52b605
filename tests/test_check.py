"""``deepwell check``: every part is right where the sampler is, and catches the error injected into its twin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import linalg, stats
from typer.testing import CliRunner

from deepwell.assess.check import agreement, exact_law, run, simulation
from deepwell.assess.check.agreement import Agreement, compare_samplers, disagreement
from deepwell.assess.check.exact_law import DYNAMICS, Law, law, law_of_sampler, p_value, whiten
from deepwell.assess.check.run import CheckResult, Part, run_check
from deepwell.assess.check.simulation import (
    RankHistogram,
    depth_one,
    loose,
    rank_histogram,
    simulate,
    statistics,
    tight,
)
from deepwell.assess.small_problems import Quadratic, features_and_variance, quadratic, rows_of
from deepwell.cli.main import app
from deepwell.errors import InputError
from deepwell.fits.presets import make_settings
from deepwell.inference import sghmc
from deepwell.model.deep_gp import propagate
from deepwell.numerics.jit import quick_jit


@pytest.mark.parametrize(("objective", "double"), [("predictive", True), ("predictive", False), ("expected", False)])
def test_the_sampling_loop_has_the_exact_law_and_another_temperature_is_caught(objective, double):
    with jax.enable_x64(double):
        found = law_of_sampler(objective)
    assert found.p > exact_law.FLOOR
    assert found.p_twin < exact_law.FLOOR


def test_the_law_ends_in_the_solution_of_its_lyapunov_equation_and_near_the_posterior():
    H, b, mass = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1.0, -0.5]), np.array([1.0, 2.0])
    mean, covariance = law(Quadratic(H, b), mass, DYNAMICS, 0.1, 3000)
    eps, alpha = DYNAMICS.step_size, DYNAMICS.friction
    F = np.block([[np.eye(2) - eps**2 * mass[:, None] * H, (1 - alpha) * np.eye(2)],
                  [-(eps**2) * mass[:, None] * H, (1 - alpha) * np.eye(2)]])  # fmt: skip
    Q = np.kron(np.ones((2, 2)), np.diag(2 * eps**2 * alpha * mass * 0.1))
    np.testing.assert_allclose(covariance, linalg.solve_discrete_lyapunov(F, Q), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(mean[:2], np.linalg.solve(H, b), rtol=1e-6)
    np.testing.assert_allclose(covariance[:2, :2], 0.1 * np.linalg.inv(H), rtol=0.01)


def test_p_value_of_normal_numbers_and_of_wrong_ones():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((4096, 6))
    assert p_value(normal) > 1e-3
    one_off = normal * np.where(np.arange(6) == 2, np.sqrt(1.2), 1.0)
    for wrong in (np.sqrt(1.1) * normal, normal + 0.15, one_off):
        assert p_value(wrong) < exact_law.FLOOR
    normal[0, 0] = np.nan
    assert not p_value(normal) > exact_law.FLOOR


def simulated(model, error=1.0, count=4096):
    """Truths v*, their targets y, and what y would be on average without hidden noise and how it would vary."""

    def one(key, error):
        v, y = simulate(key, model, error)
        factors = model.factors()
        first = model.layers[0].project(factors[0], jnp.asarray(simulation.X, float))
        still = tuple(jnp.zeros((layer.width,)) for layer in model.layers[:-1])
        mean, variance = propagate(model, factors, ravel_pytree(model.zero_outputs())[1](v), first, still)
        return v, y[:, 0], mean[:, 0], variance[:, 0] + 0.1

    keys = jax.random.split(jax.random.key(0), count)
    found = quick_jit(jax.vmap(one, (0, None)))(keys, jnp.asarray(error))
    return [np.asarray(x, np.float64) for x in found]


def test_truths_and_targets_at_depth_one_have_the_covariance_of_the_model():
    model = depth_one().model
    features, variance = features_and_variance(model, simulation.X)
    joint = np.block([[np.eye(10), features.T], [features, features @ features.T + np.diag(variance + 0.1)]])
    for error, is_right in ((1.0, True), (1.1, False)):
        states = np.hstack(simulated(model, error)[:2])
        assert (p_value(whiten(states, np.zeros(len(joint)), joint)) > exact_law.FLOOR) == is_right


def test_targets_of_a_loose_model_carry_its_hidden_noise():
    """Given v, they vary by more than the last layer and the noise say; where Z_1 = X they do not."""
    for case, low, high in ((tight(), 0.97, 1.03), (loose(1), 1.2, 3.0)):
        _, y, mean, variance = simulated(case.model)
        assert low < np.mean((y - mean) ** 2 / variance) < high


def test_statistics_at_depth_one_are_those_of_the_closed_form():
    with jax.enable_x64(True):
        model, rng = depth_one().model, np.random.default_rng(0)
        y, config = rng.standard_normal((simulation.ROWS, 1)), make_settings(priors=False).config(simulation.ROWS)
        pair = rng.standard_normal((2, 10))
        found = np.stack([statistics(config, model, jnp.asarray(v), rows_of(simulation.X, y)) for v in pair])
        features, _ = features_and_variance(model, simulation.PROBES)
        q = quadratic(model, simulation.X, y, "predictive")
    np.testing.assert_allclose(found[:, simulation.FUNCTION], pair @ features.T, rtol=1e-6, atol=1e-9)
    potential = [v @ q.H @ v / 2 - q.b @ v for v in pair]
    assert found[0, 4] - found[1, 4] == pytest.approx(potential[1] - potential[0], rel=1e-6)
    prior = np.sum(pair[1] ** 2 - pair[0] ** 2) / 2 / simulation.ROWS
    assert found[0, 4] - found[1, 4] == pytest.approx(found[0, 3] - found[1, 3] + prior, rel=1e-6)


def uniform_ranks(count=1024, seed=0):
    return RankHistogram(np.random.default_rng(seed).integers(0, simulation.DRAWS + 1, (count, 5)))


def too_sure(count=1024):
    """Ranks of a standard normal truth among draws whose standard deviation is 0.8."""
    rng = np.random.default_rng(0)
    draws = 0.8 * rng.standard_normal((count, simulation.DRAWS, 5))
    return RankHistogram(np.sum(draws < rng.standard_normal((count, 1, 5)), 1))


def test_uniform_ranks_pass_and_those_of_draws_too_sure_are_caught():
    every = RankHistogram(np.tile(np.arange(simulation.DRAWS + 1)[:, None], (1, 5)))
    assert every.p == 1.0
    assert every.outermost == 0.25
    np.testing.assert_array_equal(every.counts, 4)
    assert uniform_ranks().p > simulation.FLOOR
    assert too_sure().p < simulation.FLOOR
    assert too_sure().outermost > 0.3
    column = np.bincount(too_sure().ranks[:, 0] // 4, minlength=8)
    assert too_sure().p_values[0] == pytest.approx(stats.chisquare(column).pvalue)


def test_the_sampler_is_calibrated_at_depth_one_and_ten_percent_more_noise_is_caught():
    assert rank_histogram(depth_one(), 0, 1024).p > simulation.FLOOR
    assert rank_histogram(depth_one(), 0, 1024, simulation.TWIN).p < simulation.FLOOR


def test_the_sampler_is_calibrated_at_depth_two_where_nothing_is_bounded():
    with jax.enable_x64(True):
        hidden = tight().model
        _, variance = features_and_variance(hidden, simulation.X)
    assert np.max(variance) < 1e-5
    assert rank_histogram(tight(), 0, 128).p > simulation.FLOOR


def test_a_loose_bound_is_not_calibrated():
    found = rank_histogram(loose(1), 0, 128)
    assert found.p < simulation.FLOOR
    assert found.outermost > 0.35


@pytest.mark.slow
def test_inner_samples_bring_calibration_back():
    one, sixteen = (rank_histogram(loose(k), 0, 512) for k in (1, 16))
    print("outermost quarter of the ranks, inner_samples 1 and 16:", one.outermost, sixteen.outermost)
    assert one.p < simulation.FLOOR
    assert one.outermost > 0.38
    assert sixteen.outermost < 0.32


def test_disagreement_is_the_largest_of_its_parts_in_standard_deviations():
    b = np.random.default_rng(0).standard_normal((20_000, 3)) * np.array([1.0, 2.0, 5.0])
    assert disagreement(b, b) == 0.0
    assert disagreement(b + np.array([0.0, 0.6, 0.0]), b) == pytest.approx(0.3, abs=0.01)
    assert disagreement(1.4 * b, b) == pytest.approx(0.4, abs=0.01)
    b[0, 0] = np.nan
    assert not disagreement(b, b) < agreement.TOLERANCE


@pytest.mark.slow
def test_sghmc_agrees_with_nuts_and_another_noise_variance_is_caught():
    pytest.importorskip("blackjax")
    found = compare_samplers()
    assert found.gap < agreement.TOLERANCE
    assert found.twin_gap > agreement.TOLERANCE


@pytest.fixture
def quick_parts(monkeypatch):
    """Parts that pass, made of random numbers."""
    rng = np.random.default_rng(0)
    states, functions = rng.standard_normal((4096, 16)), rng.standard_normal((4000, 9))
    monkeypatch.setattr(exact_law, "law_of_sampler", lambda *_: Law(states, np.sqrt(1.1) * states))
    fake = lambda case, seed, count, error=1.0: uniform_ranks() if error == 1.0 else too_sure()  # noqa: E731
    monkeypatch.setattr(run, "rank_histogram", fake)
    monkeypatch.setattr(agreement, "can_be_tested", lambda: True)
    monkeypatch.setattr(agreement, "compare_samplers", lambda seed: Agreement(functions, 2 * functions, functions))


@pytest.mark.usefixtures("quick_parts")
def test_a_check_says_it_in_words_and_draws_a_picture(tmp_path):
    lines = []
    checked = run_check(tmp_path / "new" / "folder", progress=lines.append)
    assert checked.passed
    assert [part.verdict for part in checked.parts] == ["passed"] * 4 + ["reported"] * 2 + ["passed"]
    assert "float32" in lines[0]
    assert lines[1:] == [str(part) for part in checked.parts]
    assert "4096 chains" in lines[1]
    assert (tmp_path / "new" / "folder" / "check.png").stat().st_size > 10_000
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        run_check(tmp_path / "file")


@pytest.mark.usefixtures("quick_parts")
def test_a_wrong_part_a_twin_not_caught_and_a_missing_library_have_their_verdicts(monkeypatch, tmp_path):
    monkeypatch.setattr(agreement, "can_be_tested", lambda: False)
    missing = run_check(tmp_path)
    assert missing.passed
    assert missing.parts[-1].verdict == "skipped"
    assert "blackjax" in missing.parts[-1].summary
    monkeypatch.setattr(run, "rank_histogram", lambda *_: too_sure())
    wrong = run_check(None)
    assert [part.verdict for part in wrong.parts[2:6]] == ["failed", "failed", "reported", "reported"]
    assert wrong.verdict == "failed: calibration, depth 1; calibration, depth 2, Z_1 = X"
    monkeypatch.setattr(run, "rank_histogram", lambda *_: uniform_ranks())
    blind = run_check(None).parts[2]
    assert blind.verdict == "failed"
    assert "not caught" in blind.summary


@pytest.mark.parametrize(("verdict", "code"), [("passed", 0), ("failed", 1)])
def test_the_command_ends_with_one_if_a_part_failed(monkeypatch, tmp_path, verdict, code):
    def fake(folder, seed, thorough, progress):
        assert (folder, seed, thorough, str(jnp.zeros(()).dtype)) == (tmp_path, 3, False, "float64")
        return CheckResult("here", [Part("law", verdict, "p = 0.5", 1.0)])

    monkeypatch.setattr(run, "run_check", fake)
    result = CliRunner().invoke(app, ["check", "--out", str(tmp_path), "--seed", "3", "--double"])
    assert result.exit_code == code
    assert "check.png" in result.output


@pytest.fixture
def noisy_sampler(monkeypatch):
    """Every step of SGHMC with 10 % too much noise."""
    step = sghmc.step
    monkeypatch.setattr(sghmc, "step", lambda *arguments: step(*arguments[:-1], 1.1 * arguments[-1]))
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.usefixtures("noisy_sampler")
def test_an_error_in_the_sampler_itself_is_found():
    found = law_of_sampler("predictive")
    assert found.p < exact_law.FLOOR
    assert found.p_twin < exact_law.FLOOR
    assert rank_histogram(depth_one(), 0, run.DEPTH_ONE).p < simulation.FLOOR


@pytest.mark.slow
@pytest.mark.parametrize("double", [False, True])
def test_the_whole_check_passes(double, tmp_path):
    with jax.enable_x64(double):
        checked = run_check(tmp_path, seed=1, progress=print)
    assert checked.passed
    assert checked.seconds < 300
