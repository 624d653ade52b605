"""The normal numbers are those of the cipher and the quantile function they claim to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import special, stats

from deepwell.numerics.randomness import normal_from_bits, standard_normal, threefry

SINGLE = np.dtype("float32")
KNOWN = [  # of the Random123 distribution's table of known answers, threefry2x32 with 20 rounds
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_known_answers_of_the_cipher(key, counter, expected):
    words = threefry(jnp.asarray(key, jnp.uint32), *(jnp.asarray(word, jnp.uint32) for word in counter))
    assert tuple(int(word) for word in words) == expected


def test_the_cipher_is_that_of_jax():
    key = jax.random.key_data(jax.random.key(7))
    counters = jnp.arange(1000, dtype=jnp.uint32)
    ours = jnp.concatenate(threefry(key, counters[:500], counters[500:]))
    np.testing.assert_array_equal(ours, threefry_2x32(key, counters))


def test_normal_quantiles_equal_scipy():
    bits = np.concatenate([np.arange(0, 2**32, 65_537), np.arange(4)]).astype(np.uint32)
    tail = ((bits >> 1).astype(np.float64) + 0.5) / 2.0**32
    exact = special.ndtri(tail) * np.where(bits & 1, 1.0, -1.0)
    found = np.asarray(normal_from_bits(jnp.asarray(bits)))
    common = tail > 2.0**-24  # five standard deviations; beyond, the polynomial is off by less than 1 in 1,000
    np.testing.assert_allclose(found[common], exact[common], rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-6)


def test_a_million_draws_are_standard_normal_and_a_scale_one_percent_off_is_seen():
    draws = np.asarray(standard_normal(jax.random.key(1), (1000, 1000), SINGLE)).astype(np.float64)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-6
    assert stats.kstest(1.01 * draws.ravel(), "norm").pvalue < 1e-6
    neighbours = [
        np.mean(draws[:, 1:] * draws[:, :-1]),
        np.mean(draws.ravel()[: 10**6 // 2] * draws.ravel()[10**6 // 2 :]),
    ]
    assert np.max(np.abs(neighbours)) < 5.0 / np.sqrt(10**6 / 2)


def test_draws_are_decided_by_the_key_alone():
    keys = jax.random.split(jax.random.key(0), 3)
    one_by_one = [standard_normal(key, (7,), SINGLE) for key in keys]
    together = jax.vmap(lambda key: standard_normal(key, (7,), SINGLE))(keys)
    np.testing.assert_array_equal(jnp.stack(one_by_one), together)
    assert len(np.unique(together)) == 21


def test_other_keys_and_double_precision_are_left_to_jax():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(standard_normal(key, (5,), SINGLE), jax.random.normal(key, (5,), SINGLE))
    with jax.enable_x64(True):
        key = jax.random.key(0)
        np.testing.assert_array_equal(
            standard_normal(key, (5,), np.dtype("float64")), jax.random.normal(key, (5,), np.dtype("float64"))
        )
