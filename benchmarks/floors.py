"""The least time an iteration can take: its operations and bytes, counted, against the device's rates, measured."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


def iteration_operations(phase: str, depth: int, columns: int, width: int, inducing: int, batch: int) -> float:
    """Floating-point operations in the matrix products of one iteration of ``sghmc`` at one chain.

    Of a layer with d inputs and w outputs at n rows and m inducing points: distances 2 n m (d + 2), features 2 n m^2,
    means 2 n m w. A gradient in the layer's inputs and v repeats each of these once, and the means twice; one in theta
    repeats the features twice more, for the inputs' side and for the factor.
    """
    total = 0.0
    for level in range(depth):
        d, w = columns if level == 0 else width, 1 if level == depth - 1 else width
        distances, features, means = (
            2.0 * batch * inducing * (d + 2),
            2.0 * batch * inducing**2,
            2.0 * batch * inducing * w,
        )
        sampler = 2.0 * means if level == 0 else 2.0 * (distances + features) + 3.0 * means
        hyper = 3.0 * features + 2.0 * distances + 2.0 * means + (0.0 if level == 0 else distances)
        total += sampler + (hyper + 8.0 * inducing**3 if phase == "burn-in" else 0.0)
    return total


def prediction_operations(depth: int, columns: int, width: int, inducing: int, rows: int, samples: int) -> float:
    """Of predicting with samples that share theta: the first layer's features are computed once for all samples."""
    total = 2.0 * rows * inducing * (columns + 2 + inducing)
    for level in range(depth):
        w = 1 if level == depth - 1 else width
        again = 0.0 if level == 0 else 2.0 * rows * inducing * (width + 2 + inducing)
        total += samples * (again + 2.0 * rows * inducing * w)
    return total


def iteration_bytes(phase: str, depth: int, columns: int, width: int, inducing: int, batch: int) -> float:
    """Bytes that one iteration moves at least, in float32.

    The minibatch is read; v, and in burn-in theta, are read and written with their moments. The features of a layer,
    (batch, inducing), are written by the forward pass and read by the gradient; those of the first layer are stored
    while sampling, and are only read.
    """
    unknowns = depth * inducing * ((columns + width if phase == "burn-in" else 0) + width)
    passes_over_features = 2 * depth - (0 if phase == "burn-in" else 1)
    return 4.0 * (batch * (columns + 1) + 10 * unknowns + passes_over_features * batch * inducing)


class Device(NamedTuple):
    """Rates of the default device, in full float32 precision."""

    operations_a_second: float
    """In a square product that fills the device: the bound."""
    bytes_a_second: float
    thin_operations_a_second: float
    """In products of the shape (batch, inducing) by (inducing, inducing), one after the other. No bound: a GPU is
    mostly idle in such a product, and does many of them at once. On a CPU it says what a layer's products reach."""


def device_rates(inducing: int, batch: int) -> Device:
    """All three, measured."""
    side = 2_048 if jax.default_backend() == "cpu" else 8_192
    return Device(product_rate(side, side, 3), bandwidth(), product_rate(batch, inducing, 20))


def floor_seconds(operations: float, moved: float, device: Device) -> float:
    """max(operations / rate, bytes / bandwidth)."""
    return max(operations / device.operations_a_second, moved / device.bytes_a_second)


def product_rate(rows: int, side: int, repeats: int) -> float:
    """Operations a second of (rows, side) by (side, side), ``repeats`` times in one program."""
    left, right = jnp.full((rows, side), 0.5), jnp.full((side, side), 1.0 / side)

    def once(_: int, x: jax.Array) -> jax.Array:
        return jnp.matmul(x, right, precision=lax.Precision.HIGHEST)

    repeat = jax.jit(lambda x: lax.fori_loop(0, repeats, once, x))
    return repeats * 2.0 * rows * side**2 / _median_seconds(lambda: repeat(left))


def bandwidth(size: int = 2**28) -> float:
    """Bytes a second read and written by passes over one large array."""
    large = jnp.ones(size // 4)
    passes = jax.jit(lambda x: lax.fori_loop(0, 10, lambda _, x: x * 0.999, x))
    return 10 * 2.0 * size / _median_seconds(lambda: passes(large), rounds=3)


def _median_seconds(run: Callable[[], jax.Array], rounds: int = 7) -> float:
    jax.block_until_ready(run())
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
