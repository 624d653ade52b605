"""One contract for every inference method."""

import jax
import numpy as np
import pytest
from test_fit import NASTY, table

import deepwell
from deepwell import InputError
from deepwell.fits.prepare import prepare
from deepwell.fits.presets import make_settings
from deepwell.inference.driver import call_plainly, chunks
from deepwell.inference.registry import method_named, method_names

SHORT = {"preset": "quick", "burn_in": 40, "num_samples": 6, "spacing": 2, "num_inducing": 8}
OF_METHOD = {
    "mcem": {"e_steps": 20, "m_steps": 25},
    "bnn": {"hidden_units": (5, 5)},
    "nuts": {"width": 1, "spacing": 1},
    "dsvi-decoupled": {"num_inducing": 12, "num_variance_inducing": 4},
}
TABLE = {name: {**SHORT, "inference": name, **OF_METHOD.get(name, {})} for name in method_names()}


@pytest.fixture(scope="module", autouse=True)
def _blackjax():
    pytest.importorskip("blackjax")


@pytest.fixture(scope="module", params=TABLE)
def method(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(method):
    X, y = table(40)
    return deepwell.fit(X, y, **TABLE[method])


def test_the_table_is_complete():
    assert set(TABLE) == set(method_names())


def test_same_seed_same_bits_in_any_unit_and_another_seed_another_result(method, fitted):
    X, y = table(40)
    again = deepwell.fit(X * 4.0, y * 1024.0, **TABLE[method])  # powers of two: standardised, the bits are the same
    np.testing.assert_array_equal(again.predict(X * 4.0), fitted.predict(X) * 1024.0)
    np.testing.assert_array_equal(again.predict_dist(X * 4.0).std, fitted.predict_dist(X).std * 1024.0)
    shift = fitted.predict_dist(X).log_prob(y) - again.predict_dist(X * 4.0).log_prob(y * 1024.0)
    np.testing.assert_allclose(shift, np.log(1024.0), rtol=1e-9)
    other = deepwell.fit(X, y, seed=1, **TABLE[method])
    assert not np.array_equal(other.predict(X), fitted.predict(X))


def test_answers_are_whole(method, fitted):
    X, y = table(40)
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == (40,)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    assert abs(np.mean(mean) - np.mean(y)) < np.std(y)
    assert fitted.trace[-1][0] == sum(
        phase.iterations for phase in method_named(method).phases(fitted.settings.config(40))
    )
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(fitted.predict(X[order]), mean[order])


def test_files_keep_the_bits(fitted, tmp_path):
    X, _ = table(40)
    fitted.save(tmp_path / "m.deepwell")
    loaded = deepwell.load(tmp_path / "m.deepwell")
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), fitted.predict(X, return_std=True))
    assert loaded.settings == fitted.settings
    assert jax.tree.structure(loaded.posterior) == jax.tree.structure(fitted.posterior)


def prepared_run(method):
    return prepare(*table(40), make_settings(**TABLE[method]), 0).run


def test_state_keeps_its_structure_through_every_chunk(method):
    """By shapes alone, nothing computed: a phase's state goes in and out with the same tree, shapes and types."""
    run = prepared_run(method)

    def shapes_alone(function, axes, config, *arrays):
        result = jax.eval_shape(lambda *arrays: function(config, *arrays), *arrays)
        phase = next((phase for phase in run.phases if phase.advance is function), None)
        if phase is not None:
            (after, fit), state = result, arrays[4]
            assert fit.shape == ()
            if phase.name != "warm-up":  # of nuts, which makes its state in one go
                assert jax.tree.structure(after) == jax.tree.structure(state)
                assert [(x.shape, x.dtype) for x in jax.tree.leaves(after)] == [
                    (x.shape, x.dtype) for x in jax.tree.leaves(state)
                ]
        return result

    *_, last = chunks(run, shapes_alone)
    assert last.number == len(run.phases) - 1
    _, issues = jax.eval_shape(lambda s: run.method.finish(run.config, run.keys.finish, run.problem, s), last.state)
    assert [count.ndim for count in issues] == [0, 0, 0, 1]


def test_every_matrix_product_asks_for_full_precision(method):
    """GPUs otherwise round float32 operands to TF32; the jaxpr says what is asked for."""
    run = prepared_run(method)

    def everything():
        *_, last = chunks(run, call_plainly, whole=True)
        posterior, _ = run.method.finish(run.config, run.keys.finish, run.problem, last.state)
        return posterior.functions(posterior.prepare(), run.rows.X)

    text = str(jax.make_jaxpr(everything)())
    products = text.count("dot_general[")
    assert products >= 2
    asked = text.count("precision=(Precision.HIGHEST, Precision.HIGHEST)")
    if method == "nuts":  # blackjax's own products of momenta are not ours
        assert asked >= 2
    else:
        assert asked == products


@pytest.mark.parametrize("name", ["all rows equal", "huge and tiny"])
def test_nasty_tables_give_finite_answers(method, name):
    X, y = NASTY[name]
    X, y = X[:30], y[:30]
    model = deepwell.fit(X, y, **{**TABLE[method], "depth": 1, "burn_in": 20})
    for inputs in (X, X + 1e6 * (1.0 + np.abs(X))):
        mean, std = model.predict(inputs, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)


def test_decoupled_takes_three_times_the_presets_inducing_points_for_the_mean_and_half_for_the_variance():
    settings = make_settings("paper", inference="dsvi-decoupled", depth=2)
    assert settings.num_inducing == 300
    assert settings.variance_inducing() == (50, 50)
    assert make_settings(inference="dsvi-decoupled", num_inducing=60).num_inducing == 60


def test_variational_models_have_no_chains_to_diagnose():
    X, y = table(40)
    with pytest.raises(InputError, match="dsvi has no chains"):
        deepwell.fit(X, y, **TABLE["dsvi"]).diagnose(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inference": "dsvi", "dsvi_start": 5}, "dsvi_start is for sghmc, sghmc-naive, mcem, not for dsvi"),
        ({"dsvi_start": -1}, "dsvi_start=-1 must be an integer, 0 or more"),
        ({"inference": "bnn", "hidden_units": 50}, "hidden_units=50 must be a list"),
        ({"inference": "bnn", "hidden_units": (0,)}, "hidden_units=0 must be a positive integer"),
        ({"inference": "dsvi-decoupled", "num_variance_inducing": 0}, "num_variance_inducing=0"),
        ({"init": "sghmc"}, "init='sghmc' is neither a fitted model nor a fitted estimator"),
    ],
)
def test_bad_options_are_named(settings, message):
    X, y = table(40)
    with pytest.raises(InputError, match=message):
        deepwell.fit(X, y, **settings)


def test_without_blackjax_nuts_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "blackjax", None)
    with pytest.raises(InputError, match=r"pip install 'deepwell\[nuts\]'"):
        deepwell.fit(*table(40), inference="nuts")
