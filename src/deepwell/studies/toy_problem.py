"""Seven points that a deep GP of two layers explains in two ways.

The targets are even in x. So if (f_1, f_2) explains them, its mirror image f_1'(x) = -f_1(-x), f_2'(h) = f_2(-h) does
so equally well: the mean of the hidden layer is the identity, which is odd, and the kernels are symmetric. The best
explanations are not their own mirror images: the dip in the middle lies on one side of the hidden axis, and the flat
shoulder on that side is squeezed. So there are two of them, A and B, with equal log joint density. Between the points
they predict differently: f'(x) = f(-x).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from deepwell.assess.small_problems import two_layers
from deepwell.data.scaling import input_scaling
from deepwell.model.deep_gp import DeepGP, log_prior_outputs, propagate, row_log_density
from deepwell.model.layers import conditional
from deepwell.numerics.jit import quick_jit
from deepwell.numerics.linalg import default_jitter
from deepwell.numerics.promotion import usual_promotion

X = np.array([-8.0, -3.0, -2.0, 0.0, 2.0, 3.0, 8.0])[:, None]
Y = np.array([2.0, 1.0, 1.0, -2.0, 1.0, 1.0, 2.0])
SETTINGS: dict[str, Any] = {
    "depth": 2, "width": 1, "num_inducing": len(X), "hidden_variance": 1.0, "output_variance": 1.0,
    "objective": "expected", "fixed": ["*"], "step_size": 0.05, "sampling_friction": 0.05,
}  # fmt: skip
"""theta is fixed: kernels of variance and lengthscale 1 in standard units, inducing inputs at the points."""
ADAM_STEPS, LBFGS_STEPS, LEARNING_RATE = 1_500, 150, 0.05
"""Steps of Adam at a falling rate, then of L-BFGS, from a start to a maximum."""
SAME_WITHIN = 0.1
"""Two maxima are one if their hidden outputs differ by less than this at every point."""


class Maxima(NamedTuple):
    """Local maxima of the log joint density of v, highest first.

    ``hidden`` is f_1 at the points, ``v`` the whitened inducing outputs, flat, ``starts`` how many runs ended there.
    """

    log_joint: np.ndarray
    hidden: np.ndarray
    v: np.ndarray
    starts: np.ndarray


def standard_points() -> tuple[np.ndarray, np.ndarray]:
    """X and Y in standard units, as a fit sees them."""
    y = (Y - np.mean(Y)) / np.std(Y)
    return input_scaling(X, None).standardise(X), y[:, None]


def toy_model(noise_variance: float) -> DeepGP:
    """The deep GP that ``deepwell.fit`` makes of the points with ``SETTINGS``."""
    return two_layers(standard_points()[0], 1.0, 1.0, noise_variance, default_jitter())


def log_joint(model: DeepGP, flat: Float[Array, " k"]) -> Float[Array, ""]:
    """E log p(y | f_2) + log p(v), with the hidden layer at its mean, as its variance at the points is zero."""
    points, y = (jnp.asarray(values, float) for values in standard_points())
    v = ravel_pytree(model.zero_outputs())[1](flat)
    prepared = model.prepare()
    still = (jnp.zeros((1,), flat.dtype),)
    moments = propagate(model, prepared, v, model.layers[0].project(prepared.layers[0], points), still)
    return jnp.sum(row_log_density(model, moments, y, "expected")) + log_prior_outputs(v)


def layer_function(
    model: DeepGP, flat: Float[Array, " k"], level: int, places: Float[Array, " g"]
) -> Float[Array, " g"]:
    """Mean of f_level at the places along its input."""
    v = ravel_pytree(model.zero_outputs())[1](flat)
    projected = model.layers[level].project(model.prepare().layers[level], places[:, None])
    return conditional(projected, v[level])[0][:, 0]


@quick_jit
def _climb_all(model: DeepGP, starts: Float[Array, "s k"]) -> tuple[Array, Array]:
    import optax

    adam, newton = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, ADAM_STEPS)), optax.lbfgs()
    adam_update, newton_update = usual_promotion(adam.update), usual_promotion(newton.update)

    def loss(v: Array) -> Array:
        return -log_joint(model, v)

    def climb(v: Array) -> tuple[Array, Array]:
        def step(_: Any, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            update, state = adam_update(jax.grad(loss)(carry[0]), carry[1])
            return carry[0] + update, state

        def polish(_: Any, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            at, state = carry
            value, gradient = optax.value_and_grad_from_state(loss)(at, state=state)
            update, state = newton_update(gradient, state, at, value=value, grad=gradient, value_fn=loss)
            return at + update, state

        v, _ = jax.lax.fori_loop(0, ADAM_STEPS, step, (v, adam.init(v)))
        v, _ = jax.lax.fori_loop(0, LBFGS_STEPS, polish, (v, newton.init(v)))
        return v, -loss(v)

    return jax.vmap(climb)(starts)


def find_maxima(noise_variance: float, starts: int = 64, seed: int = 0) -> Maxima:
    """Maxima that optimisation reaches from draws of the prior."""
    model = toy_model(noise_variance)
    ends = _climb_all(model, jnp.asarray(prior_draws(starts, seed), float))
    v, heights = (np.asarray(values) for values in ends)
    places = jnp.asarray(standard_points()[0][:, 0], float)
    hidden = np.asarray(jax.vmap(lambda flat: layer_function(model, flat, 0, places))(jnp.asarray(v)))
    kept: list[int] = []
    counts: list[int] = []
    for i in np.argsort(-heights):
        same = [k for k, j in enumerate(kept) if np.max(np.abs(hidden[i] - hidden[j])) < SAME_WITHIN]
        if same:
            counts[same[0]] += 1
        else:
            kept.append(int(i))
            counts.append(1)
    return Maxima(heights[kept], hidden[kept], v[kept], np.array(counts))


def prior_draws(count: int, seed: int) -> np.ndarray:
    """v ~ N(0, I), flat."""
    return np.random.default_rng([seed, 7]).standard_normal((count, 2 * len(X)))


def shares(hidden: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """Shares of samples (sample, point) in each of two modes (2, point). A sample is in a mode if their hidden outputs
    are closer than half the distance between the modes."""
    distance = np.sqrt(np.mean((hidden[:, None] - modes[None, :2]) ** 2, -1))
    near = distance < 0.5 * np.sqrt(np.mean((modes[0] - modes[1]) ** 2))
    return np.mean(near, 0)
