"""Problems of one shape run as one program, and give what each gives alone."""

import numpy as np
import pytest
from test_fit import table

import deepwell
from deepwell.errors import InputError
from deepwell.fits.group import fit_group
from deepwell.fits.interrupt import Watch
from deepwell.store.checkpoint import Checkpoints

SHORT = {"preset": "quick", "burn_in": 30, "num_samples": 4, "spacing": 3, "num_inducing": 8}


@pytest.mark.parametrize("inference", ["sghmc", "dsvi"])
def test_a_group_gives_what_its_members_give_alone(inference):
    tables = [table(40, seed=s) for s in range(3)]
    together = fit_group(tables, [5, 6, 7], inference=inference, **SHORT)
    for (X, y), seed, model in zip(tables, (5, 6, 7), together, strict=True):
        alone = deepwell.fit(X, y, seed=seed, inference=inference, **SHORT)
        np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=2e-3)
        np.testing.assert_allclose([v for _, v in model.trace], [v for _, v in alone.trace], rtol=1e-3)
        assert (model.seed, model.num_rows, model.settings) == (seed, 40, alone.settings)


def test_tables_of_different_shapes_are_fitted_one_by_one():
    models = fit_group([table(40), table(70)], [0, 1], **SHORT)
    assert [model.num_rows for model in models] == [40, 70]
    X, y = table(70)
    np.testing.assert_array_equal(models[1].predict(X), deepwell.fit(X, y, seed=1, **SHORT).predict(X))


def test_tables_whose_minibatches_differ_are_not_one_program():
    """90 and 110 rows are padded to one shape, but at a batch size of 100 only the second has minibatches."""
    models = fit_group([table(90), table(110)], [0, 1], **SHORT, batch_size=100)
    X, y = table(110)
    alone = deepwell.fit(X, y, seed=1, **SHORT, batch_size=100)
    np.testing.assert_array_equal(models[1].predict(X), alone.predict(X))


def test_a_group_that_was_interrupted_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    """Stopped after its first chunk it must end with the bits of a group that was left alone."""
    tables, long = [table(40, seed=s) for s in range(2)], {**SHORT, "burn_in": 600}
    whole = fit_group(tables, [5, 6], **long)
    written = []
    monkeypatch.setattr(Watch, "stop", lambda watch: len(written) < 1 and written.append(1) is None)
    with pytest.raises(deepwell.Interrupted) as interrupted:
        fit_group(tables, [5, 6], checkpoint=tmp_path / "c", **long)
    assert interrupted.value.model is None
    with pytest.raises(InputError, match="seed was 6 and is now 7"):
        fit_group(tables, [5, 7], checkpoint=tmp_path / "c", **long)
    with pytest.raises(InputError, match="only one of the two has a table 2"):
        fit_group([*tables, tables[0]], [5, 6, 7], checkpoint=tmp_path / "c", **long)
    found = []
    restore = Checkpoints.restore
    monkeypatch.setattr(Checkpoints, "restore", lambda *args: found.append(restore(*args)) or found[-1])
    again = fit_group(tables, [5, 6], checkpoint=tmp_path / "c", **long)
    assert (found[0][0].phase, found[0][0].done) == (0, 250)
    for a, b, (X, _) in zip(whole, again, tables, strict=True):
        np.testing.assert_array_equal(a.predict(X), b.predict(X))
        assert a.trace == b.trace


@pytest.mark.parametrize("inference", ["sghmc", "dsvi"])
def test_a_monitor_between_chunks_sees_the_model_of_a_shorter_fit_and_changes_nothing(inference):
    """dsvi after 250 of 500 iterations is dsvi of 250; sghmc draws its samples at the theta of 250 iterations."""
    X, y = table(40)
    settings = {**SHORT, "inference": inference, "burn_in": 500}
    seen = {}

    def monitor(iteration, model_now):
        if iteration in (250, 500):
            seen[iteration] = model_now()

    monitored = deepwell.fit(X, y, monitor=monitor, **settings)
    alone = deepwell.fit(X, y, **settings)
    short = deepwell.fit(X, y, **{**settings, "burn_in": 250})
    np.testing.assert_array_equal(monitored.predict(X), alone.predict(X))
    np.testing.assert_array_equal(monitored.predict(X), seen[500].predict(X))
    np.testing.assert_allclose(seen[250].predict(X), short.predict(X), atol=1e-4)
    assert np.max(np.abs(seen[250].predict(X) - alone.predict(X))) > 1e-3


@pytest.mark.parametrize("settings", [{"inference": "nuts"}, {"dsvi_start": 10}])
def test_where_no_model_can_be_made_midway_a_monitor_is_refused_at_once(settings):
    with pytest.raises(InputError, match="monitor cannot be had"):
        deepwell.fit(*table(40), monitor=lambda iteration, model_now: None, **{**SHORT, **settings})


def test_the_old_name_of_monitor_warns_and_works():
    seen = []
    with pytest.warns(FutureWarning, match="monitor"):
        deepwell.fit(*table(40), look=lambda iteration, model_now: seen.append(iteration), **{**SHORT, "burn_in": 20})
    assert seen[0] == 20
