"""The moving window of Moving Window MCEM: the newest m states of all chains, in one ring buffer."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree


class Window(NamedTuple):
    """Members stacked over (slot, chain) and the number pushed so far; it grows from empty."""

    members: PyTree
    pushed: Int[Array, ""]


def empty(size: int, example: PyTree) -> Window:
    """A window of ``size`` slots for pytrees shaped like ``example``, whose leading axis is the chain."""
    return Window(jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), example), jnp.zeros((), jnp.int32))


def push(window: Window, member: PyTree) -> Window:
    """Add the newest states; past its size the window forgets the oldest."""
    slot = window.pushed % jax.tree.leaves(window.members)[0].shape[0]
    members = jax.tree.map(lambda xs, x: xs.at[slot].set(x), window.members, member)
    return Window(members, window.pushed + 1)


def mean(window: Window) -> PyTree:
    """Of the filled slots, for each chain."""
    filled = jnp.minimum(window.pushed, jax.tree.leaves(window.members)[0].shape[0])
    return jax.tree.map(lambda xs: jnp.sum(xs, 0) / filled.astype(xs.dtype), window.members)


def draw(key: PRNGKeyArray, window: Window) -> PyTree:
    """A member at random, uniform over the filled slots and the chains."""
    size, chains = jax.tree.leaves(window.members)[0].shape[:2]
    filled = jnp.minimum(window.pushed, size) * chains
    place = (jax.random.bits(key, dtype=jnp.uint32) % filled.astype(jnp.uint32)).astype(jnp.int32)
    return jax.tree.map(lambda xs: xs[place // chains, place % chains], window.members)
