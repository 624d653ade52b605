"""Random keys by what they are for. Every key of a run is folded from one key, so that no state carries keys."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray

LAST_WORD = np.uint32(2**32 - 1)
"""Keys are folded from 32-bit words. Iterations count up from 0, other purposes of a phase down from here."""


class RunKeys(NamedTuple):
    """One key each for the phases of a run, for its finish and for its start."""

    phases: tuple[Key[Array, "..."], ...]
    finish: Key[Array, "..."]
    start: Key[Array, "..."]


def run_keys(key: Key[Array, "..."], num_phases: int) -> RunKeys:
    """The keys of a run with so many phases; of a group of runs if ``key`` is an array of keys."""
    fold = jax.vmap(jax.random.fold_in, (0, None)) if key.ndim else jax.random.fold_in
    *phases, finish, start = (fold(key, i) for i in range(num_phases + 2))
    return RunKeys(tuple(phases), finish, start)


def local_part_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """Of what is learned after a run with this key: the local part."""
    return jax.random.fold_in(key, LAST_WORD)


def iteration_key(phase_key: PRNGKeyArray, iteration: Int[Array, ""]) -> PRNGKeyArray:
    """Of one iteration of a phase."""
    return jax.random.fold_in(phase_key, iteration)


def anchor_key(phase_key: PRNGKeyArray) -> PRNGKeyArray:
    """Of the control variates of a sampling phase."""
    return jax.random.fold_in(phase_key, LAST_WORD)


def m_step_key(phase_key: PRNGKeyArray, iteration: Int[Array, ""]) -> PRNGKeyArray:
    """Of the M-step of plain MCEM that follows so many iterations."""
    return jax.random.fold_in(phase_key, LAST_WORD - iteration.astype(jnp.uint32))
