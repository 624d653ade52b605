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
    return Window(
        jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), example), jnp.zeros((), jnp.int32)
    )


def push(window: Window, member: PyTree) -> Window:
    """Add the newest states; past its size the window forgets the oldest."""
    slot = window.pushed % _size(window)
    members = jax.tree.map(lambda xs, x: xs.at[slot].set(x), window.members, member)
    return Window(members, window.pushed + 1)


def draw(key: PRNGKeyArray, window: Window) -> PyTree:
    """A member at random, uniform over the filled slots and the chains."""
    slot_key, chain_key = jax.random.split(key)
    chains = jax.tree.leaves(window.members)[0].shape[1]
    slot = jax.random.randint(slot_key, (), 0, jnp.minimum(window.pushed, _size(window)))
    chain = jax.random.randint(chain_key, (), 0, chains)
    return jax.tree.map(lambda xs: xs[slot, chain], window.members)


def _size(window: Window) -> int:
    return jax.tree.leaves(window.members)[0].shape[0]
