"""Trees and quadrature: against closed forms and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deepwell.numerics.quadrature import (
    STEEPEST,
    at_nodes,
    bounded_exp,
    gaussian_log_density,
    hermite,
    sobol_normal_nodes,
)
from deepwell.numerics.trees import all_finite, select


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["a", "b"])
def test_one_number_that_is_not_finite_is_noticed_beside_integers(bad, place):
    tree = {"a": jnp.ones(3), "b": jnp.ones((2, 2)), "count": jnp.asarray(7)}
    assert all_finite(tree)
    tree[place] = tree[place].at[-1].set(bad)
    assert not all_finite(tree)


def test_select_takes_one_tree_or_the_other():
    new, old = (jnp.ones(2), {"n": jnp.asarray(1)}), (jnp.zeros(2), {"n": jnp.asarray(0)})
    for condition, expected in ((True, new), (False, old)):
        chosen = jax.jit(select)(jnp.asarray(condition), new, old)
        assert jax.tree.all(jax.tree.map(np.array_equal, chosen, expected))


def test_hermite_is_exact_for_polynomials_and_at_nodes_moves_them():
    """E x^k of N(0.5, 2): scipy's moments."""
    nodes, weights = hermite(4, jnp.dtype(jnp.float32))
    x = at_nodes(jnp.asarray([0.5]), jnp.asarray([2.0]), nodes)
    for power in range(8):
        exact = stats.norm(0.5, np.sqrt(2.0)).moment(power) if power else 1.0
        assert (x**power @ weights)[0] == pytest.approx(exact, rel=2e-5)
    assert (x**8 @ weights)[0] != pytest.approx(stats.norm(0.5, np.sqrt(2.0)).moment(8), rel=1e-3)


def test_the_normal_log_density_is_that_of_scipy():
    y, mean, variance = np.asarray([[-3.0, 0.1, 40.0], [0.0, 0.2, -1.0], [1e-4, 1.0, 30.0]], np.float32)
    expected = stats.norm(mean, np.sqrt(variance)).logpdf(y)
    np.testing.assert_allclose(
        gaussian_log_density(jnp.asarray(y), jnp.asarray(mean), jnp.asarray(variance)), expected, rtol=1e-5
    )


def test_bounded_exp_is_exp_then_its_tangent():
    x = jnp.asarray([-3.0, 0.0, STEEPEST, STEEPEST + 2.0, 1e6])
    top = np.exp(STEEPEST)
    np.testing.assert_allclose(bounded_exp(x), [np.exp(-3.0), 1.0, top, 3.0 * top, top * (1e6 - 19.0)], rtol=1e-5)
    assert jax.grad(bounded_exp)(1e6) == pytest.approx(top, rel=1e-5)


def test_sobol_nodes_are_mirrored_and_fill_every_quantile_once():
    """The defining property of a Sobol sequence: of 32 points, one lies in each 32nd of every axis."""
    nodes = sobol_normal_nodes(3, 64)
    assert nodes.shape == (64, 3)
    np.testing.assert_array_equal(nodes[:32], -nodes[32:])
    quantiles = np.floor(32 * stats.norm.cdf(nodes[:32])).astype(int)
    np.testing.assert_array_equal(np.sort(quantiles, 0), np.arange(32)[:, None].repeat(3, 1))
