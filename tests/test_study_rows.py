"""What the rows of each study are of: the training and test rows, seeds and starts of a fit made by hand."""

import jax
import numpy as np
import pytest

import deepwell
from deepwell.data.splits import split_rows
from deepwell.studies import curves, gaussianity, large_tables, toy, toy_problem, uci
from deepwell.studies.job import RowWriter
from deepwell.studies.options import SMOKE_SETTINGS, StudyDefaults, StudyOptions
from deepwell.studies.synthetic import synthetic_table


class Written(RowWriter):
    """In the place of a sweep's writer."""

    def __init__(self):
        self.rows = []

    def __call__(self, member, rest):
        self.rows.append({**member, **rest})

    def wants(self, member):
        return True


def scored_by_hand(data, train, test, **settings):
    X, y = data.X.to_numpy(float), data.y.to_numpy()
    return deepwell.fit(X[train], y[train], **settings).predict_dist(X[test]).scores(y[test])


@pytest.mark.parametrize(("name", "split", "seed"), [("cep", 3, 4), ("mnist", 2, 1)])
def test_rows_of_tables_are_scores_on_rows_kept_out(name, split, seed, tmp_path):
    """Random rows of the molecules by split and seed, the last of the pictures; the fit's seed is that of both."""
    options = StudyOptions(tmp_path, smoke=True, seed=seed, splits=[split]).for_study(StudyDefaults("default"))
    row, made = options.row(dataset=name, method="SGP", split=split), Written()
    table = {"cep": large_tables.CEP_TABLE, "mnist": large_tables.MNIST_TABLE}[name]
    large_tables.fit_and_score(table, options, [row], tmp_path, made)
    data = synthetic_table(name)
    parts = split_rows(64, split, seed) if name == "cep" else (np.arange(51), np.arange(51, 64))
    settings = {
        **SMOKE_SETTINGS,
        "depth": 1,
        "inference": "dsvi",
        **({"likelihood": "robust-max"} if name == "mnist" else {}),
    }
    oracle = scored_by_hand(data, *parts, seed=seed + split, **settings)
    assert {key: made.rows[0][key] for key in oracle} == pytest.approx(oracle)


def test_the_end_of_a_curve_is_the_fit_scored(tmp_path):
    options = StudyOptions(tmp_path, smoke=True, seed=4, splits=[3]).for_study(StudyDefaults("paper"))
    member = options.row(dataset="kin8nm", depth=2, method="naive", split=3, iteration=20)
    made = Written()
    curves.trace_curve(curves.MCEM_COMPARISON, options, [member], tmp_path, made)
    settings = {"preset": "paper", "depth": 2, "inference": "sghmc-naive", **curves.SAMPLES_PER_POINT, **SMOKE_SETTINGS}
    oracle = scored_by_hand(synthetic_table("kin8nm"), *split_rows(64, 3, 4), seed=7, **settings)
    assert {key: made.rows[0][key] for key in oracle} == pytest.approx(oracle)


def test_flights_are_split_by_day_whatever_the_split(monkeypatch, tmp_path):
    """Two rows of the made-up table share each day; the fit sees none of a test day."""
    seen, whole = [], uci.fit_group

    def watched(tables, seeds, **options):
        seen.extend(zip(tables, seeds, strict=True))
        return whole(tables, seeds, **options)

    monkeypatch.setattr(uci, "fit_group", watched)
    options = StudyOptions(tmp_path, smoke=True, seed=1).for_study(StudyDefaults("paper"))
    members = [options.row(dataset="flights", method="SGP", split=split) for split in (0, 5)]
    uci.fit_and_score(options, members, tmp_path, Written())
    assert [seed for _, seed in seen] == [1, 6]
    for (X, _), _ in seen:
        assert len(X) < 64
        assert all(np.sum(X[:, 1] == day) == 2 for day in set(X[:, 1]))
        np.testing.assert_array_equal(X, seen[0][0][0])


def test_gaussianity_is_tested_on_the_training_rows_and_chains_start_at_the_draws(monkeypatch, tmp_path):
    seen, whole = [], gaussianity.fit

    def watched(X, y, init=None, **options):
        seen.append((X, init, whole(X, y, init=init, **options)))
        return seen[-1][-1]

    monkeypatch.setattr(gaussianity, "fit", watched)
    options = StudyOptions(tmp_path, smoke=True, seed=2).for_study(StudyDefaults("paper"))
    made = Written()
    members = [options.row(dataset="energy", depth=2, draws=draws) for draws in (gaussianity.ONE, gaussianity.MANY)]
    gaussianity.run_tests(options, members, tmp_path, made)
    train, _ = split_rows(64, 0, 2)
    (X_one, _, one), (X_many, start, many) = seen
    for X in (X_one, X_many):
        np.testing.assert_array_equal(X, synthetic_table("energy").X.to_numpy(float)[train])
    for drawn, begun in zip(one.posterior.samples, start.posterior.samples, strict=True):
        assert begun.shape == (SMOKE_SETTINGS["num_samples"], 1, *drawn.shape[2:])
        np.testing.assert_array_equal(begun[:, 0], drawn[0])
    assert many.posterior.draws == (SMOKE_SETTINGS["num_samples"], 1)
    for same, other in zip(jax.tree.leaves(one.posterior.model), jax.tree.leaves(many.posterior.model), strict=True):
        np.testing.assert_array_equal(same, other)
    u = gaussianity.inducing_outputs(many.posterior)
    p = np.sort(gaussianity.kurtosis_p_values(u))  # 24 outputs, so all of them are tested
    np.testing.assert_allclose(np.sort(made.rows[1]["p_values"]), p, rtol=0.01)


@pytest.mark.parametrize("mode", [0, 1])
def test_a_run_that_starts_in_a_mode_is_counted_to_it(mode, monkeypatch, tmp_path):
    """At the least noise a chain of 20 samples stays where it starts."""
    noise = toy.NOISES[-1]
    start = toy.modes_first(noise).v[mode]
    monkeypatch.setattr(toy_problem, "prior_draws", lambda count, seed: start[None] / toy.START_SCALE)
    settings = {"burn_in": 20, "num_samples": 20, "spacing": 5}
    member = {"kind": "occupancy", "method": "SGHMC", "noise_variance": noise, "seed": 0, "preset": "default"}
    made = Written()
    toy.ROWS_BY_KIND["occupancy"]([{**member, "settings": settings}], tmp_path, made)
    shares = [made.rows[0][name] for name in ("share_of_a", "share_of_b")]
    assert shares[mode] > 0.9
    assert shares[1 - mode] == 0.0
