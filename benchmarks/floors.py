"""The least an iteration must do, counted, against what this machine's matrix products reach, measured."""

import statistics
import time
from collections.abc import Callable

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


def iteration_bytes(depth: int, columns: int, width: int, inducing: int, batch: int) -> float:
    """Fewest bytes of one iteration in float32: the minibatch read, theta and v with their moments read and written."""
    unknowns = depth * inducing * (columns + 2 * width)
    return 4.0 * (batch * (columns + 1) + 10 * unknowns)


def product_rate(inducing: int, batch: int) -> float:
    """Operations a second of the product that dominates, (batch, inducing) by (inducing, inducing), full precision."""
    left, right = jnp.full((batch, inducing), 0.5), jnp.full((inducing, inducing), 0.01)

    def once(_: int, x: jax.Array) -> jax.Array:
        return jnp.matmul(x, right, precision=lax.Precision.HIGHEST)

    repeat = jax.jit(lambda x: lax.fori_loop(0, 20, once, x))
    return 20 * 2.0 * batch * inducing**2 / _median_seconds(lambda: repeat(left))


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
