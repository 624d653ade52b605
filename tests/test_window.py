from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deepwell.inference import window as windows


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.lists(st.integers(0, 99), min_size=1, max_size=12))
def test_window_equals_a_deque(size, pushed):
    window = windows.empty(size, jnp.zeros((2, 1)))
    reference = deque(maxlen=size)
    for value in pushed:
        member = jnp.asarray([[float(value)], [value + 0.5]])
        window = windows.push(window, member)
        reference.append(value)
    filled = np.asarray(window.members)[: min(len(pushed), size)]
    assert sorted(filled[:, 0, 0]) == sorted(reference)
    mean = np.mean(reference)
    np.testing.assert_allclose(windows.mean(window), [[mean], [mean + 0.5]], rtol=1e-6)
    drawn = {float(windows.draw(jax.random.key(i), window)[0]) for i in range(40)}
    assert drawn <= {v + half for v in reference for half in (0.0, 0.5)}


def test_draws_are_uniform_over_slots_and_chains():
    window = windows.empty(4, jnp.zeros((3,)))
    for i in range(4):
        window = windows.push(window, jnp.arange(3.0) + 3 * i)
    keys = jax.random.split(jax.random.key(1), 12_000)
    drawn = np.asarray(jax.vmap(lambda k: windows.draw(k, window))(keys)).astype(int)
    assert stats.chisquare(np.bincount(drawn, minlength=12)).pvalue > 1e-6
