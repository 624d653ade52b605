"""Moving Window MCEM (the paper's Algorithm 1) for any log joint density and any sampler.

E-step: one transition of the sampler at the current theta; its state enters the window.
M-step: one step of an optimiser along the gradient in theta of the log joint at a random window member.

As in the published code the E-step comes first and the window grows from empty. The two steps share a minibatch and
whatever depends on theta alone, so that it is computed, and its gradient pulled back, once. A member of a window of
hundreds is nearly independent of that minibatch; with a window of one (the naive method) it has just moved along it,
by a step of order epsilon^2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from deepwell.inference import window as windows
from deepwell.numerics.trees import keep_finite

Density = Callable[[PRNGKeyArray, PyTree], tuple[Float[Array, ""], Any]]
"""(key, v) -> (an unbiased estimate of the log joint density, anything worth watching)."""


class LogJoint(NamedTuple):
    """A model to learn: log p(y, v | theta), perhaps on a minibatch.

    ``prepare(theta)`` computes what depends on theta alone; ``batch(key, theta, prepared)`` draws a minibatch;
    ``density(theta, prepared, batch)`` is the density of v on it; ``note(prepared)`` counts what is worth counting.
    """

    prepare: Callable[[PyTree], PyTree]
    batch: Callable[[PRNGKeyArray, PyTree, PyTree], PyTree]
    density: Callable[[PyTree, PyTree, PyTree], Density]
    note: Callable[[PyTree], Int[Array, "..."]] = lambda prepared: jnp.zeros((), jnp.int32)


class Sampler(NamedTuple):
    """Chains that move: ``step(key, state, density) -> (state, watched)``, and where they are now.

    Every leaf of ``position(state)`` has the chain as its leading axis.
    """

    step: Callable[[PRNGKeyArray, PyTree, Density], tuple[PyTree, PyTree]]
    position: Callable[[PyTree], PyTree]


class State(NamedTuple):
    """theta, its optimiser, the chains, the window, how many M-steps were refused as not finite, and what the density
    noted, summed over the iterations."""

    theta: PyTree
    optimiser: PyTree
    chains: PyTree
    window: windows.Window
    refused: Int[Array, ""]
    noted: Int[Array, "..."]


def init(
    log_joint: LogJoint, theta: PyTree, chains: PyTree, position: PyTree, optimiser: Any, window_size: int
) -> State:
    """Nothing sampled yet; ``position`` is where the chains are."""
    window = windows.empty(window_size, position)
    notes = jax.eval_shape(lambda theta: log_joint.note(log_joint.prepare(theta)), theta).shape
    return State(theta, optimiser.init(theta), chains, window, jnp.zeros((), jnp.int32), jnp.zeros(notes, jnp.int32))


def step(
    key: PRNGKeyArray, state: State, log_joint: LogJoint, sampler: Sampler, optimiser: Any
) -> tuple[State, PyTree]:
    """One E-step and one M-step."""
    batch_key, sampler_key, member_key, noise_key = jax.random.split(key, 4)

    def share(theta: PyTree) -> tuple[PyTree, PyTree]:
        prepared = log_joint.prepare(theta)
        return prepared, log_joint.batch(batch_key, theta, prepared)

    shared, pull_back = jax.vjp(share, state.theta)
    chains, watched = sampler.step(sampler_key, state.chains, log_joint.density(state.theta, *shared))
    window = windows.push(state.window, sampler.position(chains))
    member = windows.draw(member_key, window)

    def loss(theta: PyTree, shared: tuple[PyTree, PyTree]) -> Float[Array, ""]:
        value, _ = log_joint.density(theta, *shared)(noise_key, member)
        return -value

    direct, through = jax.grad(loss, argnums=(0, 1), allow_int=True)(state.theta, shared)
    (indirect,) = pull_back(through)
    gradient = jax.tree.map(jnp.add, direct, indirect)
    updates, moved = optimiser.update(gradient, state.optimiser, state.theta)
    theta = jax.tree.map(jnp.add, state.theta, updates)
    (theta, moved), refused = keep_finite((theta, moved), (state.theta, state.optimiser), gradient)
    return State(
        theta,
        moved,
        chains,
        window,
        state.refused + refused,
        state.noted + log_joint.note(shared[0]),
    ), watched
