"""Any method starts from what another found: at no iterations to speak of, it still predicts what the other did."""

import numpy as np
import pytest
from test_fit import table

import deepwell
from deepwell import InputError
from deepwell.fits.presets import make_settings
from deepwell.fits.start import fitted_start, make_problem

LONG = {"preset": "quick", "num_inducing": 15, "burn_in": 800}
NONE = {"preset": "quick", "burn_in": 1, "num_samples": 10, "spacing": 1, "learning_rate": 1e-6, "step_size": 1e-5}


@pytest.fixture(scope="module")
def sources():
    X, y = table(60)
    return {name: deepwell.fit(X, y, inference=name, **LONG) for name in ("sghmc", "dsvi", "dsvi-decoupled")}


def error(model):
    X, y = table(200, seed=5)
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


@pytest.mark.parametrize("source", ["sghmc", "dsvi", "dsvi-decoupled"])
@pytest.mark.parametrize("target", ["sghmc", "sghmc-bayes", "dsvi", "dsvi-decoupled"])
def test_a_warm_start_begins_where_the_other_ended(sources, source, target):
    X, y = table(60)
    cold = deepwell.fit(X, y, inference=target, num_inducing=15, **NONE)
    warm = deepwell.fit(X, y, inference=target, init=sources[source], **NONE)
    assert error(cold) > 0.8
    assert error(sources[source]) < 0.55
    assert error(warm) < error(sources[source]) + 0.1


def test_chains_go_on_from_chains_and_units_stay_those_of_the_start(sources):
    X, y = table(60)
    many = deepwell.fit(X, y, num_chains=2, **{**LONG, "burn_in": 50})
    likelihood = many.posterior.model.likelihood
    problem = make_problem(np.random.default_rng(0), X, 1, make_settings("quick"), likelihood, many)
    for start, samples in zip(problem.outputs, many.posterior.samples, strict=True):
        np.testing.assert_array_equal(start, samples[:, -1])
    other = deepwell.fit(3.0 * X + 1.0, y, init=many, **NONE)
    np.testing.assert_array_equal(other.x_scaling.offset, many.x_scaling.offset)


def test_a_short_dsvi_run_comes_before_burn_in_when_asked_for():
    X, y = table(60)
    phases = []
    settings = {**NONE, "learning_rate": 0.02, "num_inducing": 15}
    model = deepwell.fit(X, y, dsvi_start=600, callbacks=[lambda event: phases.append(event.phase)], **settings)
    assert list(dict.fromkeys(phases)) == ["warm start", "burn-in", "sampling"]
    assert error(model) < 0.6 < error(deepwell.fit(X, y, **settings))


def test_what_cannot_be_a_start_is_refused(sources):
    X, y = table(60)
    net = deepwell.fit(X, y, preset="quick", inference="bnn", hidden_units=(3,), burn_in=5)
    with pytest.raises(InputError, match="a deep GP cannot start from a model fitted by bnn"):
        deepwell.fit(X, y, init=net, **NONE)
    with pytest.raises(InputError, match="bnn cannot start from a model fitted by sghmc"):
        deepwell.fit(X, y, inference="bnn", init=sources["sghmc"], **NONE)
    with pytest.raises(InputError, match="init was fitted with feature names x0, x1, x2, but this table has x0, x1"):
        deepwell.fit(X[:, :2], y, init=sources["sghmc"], **NONE)
    again = deepwell.fit(X, y, preset="quick", inference="bnn", init=net, burn_in=1, num_samples=2)
    assert again.posterior.parameters.shape[-1] == net.posterior.parameters.shape[-1]
    assert fitted_start(None) is None
    with pytest.raises(InputError, match="depth=3 cannot be had: init was fitted with depth=2"):
        deepwell.fit(X, y, init=sources["sghmc"], depth=3, **NONE)
