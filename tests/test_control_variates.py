"""Control variates: gradients of minibatches relative to a point where the gradient over all rows is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import CONFIG, Crash, crash_at, flat_density

import deepwell
from deepwell.assess.small_problems import line_data, problem_of, shallow, two_layers
from deepwell.data.rows import minibatch, to_rows
from deepwell.fits.presets import make_settings
from deepwell.inference import sghmc
from deepwell.inference.chains import move, no_samples
from deepwell.inference.moving_window import Collecting, freeze
from deepwell.inference.problem import density_of_v
from deepwell.model.deep_gp import Batch

ROWS, SIZE = 45, 20  # the last block has five rows


def frozen_at(model, anchor, seed=0):
    """The library's own context of a sampling phase with one chain, and what it was made of."""
    X, y = line_data(ROWS)
    config, problem = CONFIG._replace(batch_size=SIZE, control_variates=True), problem_of(model)
    rows = to_rows(np.random.default_rng(0), X, y, SIZE)
    chains = jax.vmap(sghmc.init)(anchor[None])
    moments = jax.vmap(sghmc.init_moments)(anchor[None])
    none, samples = jnp.zeros((), jnp.int32), no_samples(config, anchor.size, anchor.dtype)
    theta, _ = ravel_pytree(problem.theta)
    state = Collecting(theta, moments, none, jnp.zeros((1,), jnp.int32), chains, samples, anchor[None])
    return config, rows, freeze(config, jax.random.key(seed), problem, rows, state)


def gradient_on_all_rows(model, v, key):
    density = flat_density(CONFIG, problem_of(model), *line_data(ROWS))
    return jax.grad(lambda v: -density(key, v)[0])(v)


def test_the_gradient_at_an_anchor_is_that_of_all_rows():
    with jax.enable_x64(True):
        model, anchor = shallow(line_data(8)[0]), jnp.linspace(-1.0, 1.0, 8)
        _, _, frozen = frozen_at(model, anchor)
        exact = gradient_on_all_rows(model, anchor, jax.random.key(0))
        np.testing.assert_allclose(frozen.anchors.gradient[0], exact, rtol=1e-9)


def test_at_depth_2_it_is_that_of_all_rows_over_the_hidden_noise():
    """Against a mean over many draws: within eight standard errors, and the error is that of sixteen draws."""
    model = two_layers(line_data(6)[0], hidden_variance=0.5)
    anchor = jnp.asarray(np.random.default_rng(1).standard_normal(12) * 0.3, float)
    ours = np.stack([frozen_at(model, anchor, seed)[2].anchors.gradient[0] for seed in range(8)])
    keys = jax.random.split(jax.random.key(9), 4_000)
    many = np.asarray(jax.lax.map(lambda key: gradient_on_all_rows(model, anchor, key), keys))
    error = np.sqrt(np.var(ours, 0, ddof=1) / len(ours) + np.var(many, 0) / len(many))
    assert np.all(np.abs(np.mean(ours, 0) - np.mean(many, 0)) < 8.0 * error)  # t with about 7 degrees: 1e-4 each
    assert np.mean(np.std(ours, 0)) < 0.4 * np.mean(np.std(many, 0))  # sixteen draws: 0.25 of one


def test_the_corrected_gradient_is_unbiased_and_quieter():
    """Over every minibatch there is, the mean is the gradient over all rows; the spread is a fraction."""
    with jax.enable_x64(True):
        model, anchor = shallow(line_data(8)[0]), jnp.linspace(-1.0, 1.0, 8)
        config, rows, frozen = frozen_at(model, anchor)
        v = anchor + 0.1
        chain, moments = sghmc.init(v), sghmc.init_moments(v)
        one = jax.tree.map(lambda x: x[0], frozen.anchors)

        def gradient(start, anchor):
            (first, y), weight = jax.tree.map(
                lambda x: jax.lax.dynamic_slice_in_dim(x, start, SIZE), ((frozen.projected, rows.y), jnp.ones(ROWS * 2))
            )
            density = density_of_v(config, frozen.model, frozen.prepared, Batch(first, y, weight), rows.num_data)
            density_key, step_key = jax.random.split(jax.random.key(0))
            return move(density_key, step_key, chain, moments, density, sghmc.Dynamics(), rows.num_data, anchor)[1]

        corrected, plain = (np.stack([gradient(s, a) for s in range(ROWS)]) for a in (one, None))
        exact = gradient_on_all_rows(model, v, jax.random.key(0))
        np.testing.assert_allclose(np.mean(corrected, 0), exact, rtol=1e-9)
        np.testing.assert_allclose(np.mean(plain, 0), exact, rtol=1e-9)
        assert np.sum(np.var(corrected, 0)) < 0.1 * np.sum(np.var(plain, 0))
        wrong = one._replace(gradient=1.1 * one.gradient)
        biased = np.mean(np.stack([gradient(s, wrong) for s in range(ROWS)]), 0)
        assert not np.allclose(biased, exact, rtol=1e-3)


def test_a_minibatch_is_a_run_of_the_same_rows():
    """What the test above enumerates is what ``minibatch`` draws from."""
    X, y = line_data(ROWS)
    rows = to_rows(np.random.default_rng(0), X, y, SIZE)
    starts = [np.asarray(rows.X[s : s + SIZE]) for s in range(ROWS)]
    for seed in range(5):
        (drawn, _), weight = minibatch(jax.random.key(seed), (rows.X, rows.y), rows.num_data, SIZE)
        assert any(np.array_equal(drawn, run) for run in starts)
        assert np.all(weight == 1.0)


def test_they_are_used_where_there_are_minibatches_and_theta_is_fixed():
    def used(rows, **settings):
        return make_settings(**settings).config(rows).control_variates

    assert used(1_001)
    assert used(1_001, inference="mcem")
    assert not used(1_000)
    assert not used(1_001, control_variates=False)
    assert not used(1_001, inference="sghmc-bayes")
    assert not used(20_000, preset="paper")
    assert not used(1_001, subtract_gradient_noise=True)  # what it subtracts is the noise of minibatches alone
    assert not used(1_001, likelihood="robust-max")
    assert used(1_001, likelihood="softmax")


TABLE = np.random.default_rng(0).standard_normal((120, 2))
SHORT = {"depth": 2, "num_inducing": 8, "batch_size": 50, "burn_in": 250, "num_samples": 50, "spacing": 10, "seed": 3}
SHORT["local"] = False


@pytest.mark.parametrize("inference", ["sghmc", "sghmc-naive", "mcem"])
def test_chains_move_with_them(inference):
    model = deepwell.fit(TABLE, TABLE[:, 0], inference=inference, num_chains=2, **SHORT)
    assert model.refused_moves == 0
    assert np.all(np.std(np.asarray(model.posterior.samples[-1]), axis=1) > 1e-3)


def noise_at_depth_2():
    """Variance of corrected gradients over that of plain ones, at the last draw of a short fit, summed over v."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(600)
    model = deepwell.fit(
        X, y, depth=2, num_inducing=20, batch_size=60, burn_in=2_000, num_samples=20, spacing=50, local=False
    )
    gp, draws = model.posterior.model, model.posterior.samples
    rows = to_rows(rng, model.x_scaling.standardise(X), model.y_scaling.standardise(y[:, None]), 60)
    prepared = gp.prepare()
    here, there = (ravel_pytree(jax.tree.map(pick, draws))[0] for pick in (lambda v: v[0, -1], lambda v: v[0].mean(0)))

    def gradients(key):
        batch_key, noise_key = jax.random.split(key)
        (X, y), weight = minibatch(batch_key, (rows.X, rows.y), rows.num_data, 60)
        batch = Batch(gp.layers[0].project(prepared.layers[0], X), y, weight)
        density = density_of_v(CONFIG, gp, prepared, batch, rows.num_data)
        return [jax.grad(lambda v: density(noise_key, v)[0])(v) for v in (here, there)]

    plain, at_anchor = jax.lax.map(gradients, jax.random.split(jax.random.key(0), 300))
    return float(jnp.sum(jnp.var(plain - at_anchor, 0)) / jnp.sum(jnp.var(plain, 0)))


def test_they_quieten_gradients_at_depth_2():
    assert noise_at_depth_2() < 0.5


def test_a_fit_with_them_goes_on_bit_for_bit(tmp_path):
    whole, without = (deepwell.fit(TABLE, TABLE[:, 0], control_variates=on, **SHORT) for on in (True, False))
    with pytest.raises(Crash):
        deepwell.fit(TABLE, TABLE[:, 0], checkpoint=tmp_path, every=0.0, callbacks=[crash_at(500)], **SHORT)
    again = deepwell.fit(TABLE, TABLE[:, 0], checkpoint=tmp_path, every=0.0, **SHORT)
    for a, b, c in zip(*(model.posterior.samples for model in (whole, again, without)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


def test_unknown_values_are_refused():
    with pytest.raises(deepwell.InputError, match="control_variates='yes' must be True or False"):
        make_settings(control_variates="yes")
