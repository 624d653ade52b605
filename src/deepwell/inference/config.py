"""How a run goes: what shapes its compiled programs, and the rates, which are arguments of them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from deepwell.model.deep_gp import Objective
from deepwell.model.priors import Priors

Knots = Float[Array, " k"]
"""A rate over a phase, interpolated linearly between values an equal number of iterations apart; one is a constant."""


class Config(NamedTuple):
    """Everything that shapes the compiled programs; hashable, so equal settings compile once."""

    method: str
    objective: Objective
    inner_samples: int
    batch_size: int | None  # None: all rows
    subtract_gradient_noise: bool
    control_variates: bool  # while sampling
    shortest_window: int  # floor under the window of the preconditioner; 0: as published
    burn_in: int
    window_size: int
    priors: Priors | None
    num_chains: int
    num_samples: int  # of each chain
    spacing: int
    dsvi_start: int  # iterations of dsvi before burn-in
    e_steps: int  # of plain MCEM: sampler steps of an E-step,
    e_samples: int  # samples kept of them,
    m_steps: int  # and at most so many optimiser steps of an M-step


class Rates(NamedTuple):
    """epsilon and alpha of SGHMC in burn-in and while sampling, and Adam's rate: a new value compiles nothing."""

    step_size: Knots
    friction: Knots
    sampling_step_size: Knots
    sampling_friction: Knots
    learning_rate: Knots


def make_rates(
    step_size: float | Sequence[float],
    friction: float | Sequence[float],
    sampling_friction: float,
    learning_rate: float | Sequence[float],
) -> Rates:
    """Rates from numbers or sequences of them; sampling goes on with the step size that burn-in ends with."""

    def knots(rate: float | Sequence[float]) -> Knots:
        return jnp.atleast_1d(jnp.asarray(rate, float))

    steps = knots(step_size)
    return Rates(steps, knots(friction), steps[-1:], knots(sampling_friction), knots(learning_rate))


def rate_at(knots: Knots, iteration: Int[Array, ""], iterations: int) -> Float[Array, ""]:
    """The rate at one of so many iterations of a phase."""
    if len(knots) == 1:
        return knots[0]
    place = iteration.astype(knots.dtype) * ((len(knots) - 1) / max(iterations - 1, 1))
    return jnp.interp(place, jnp.arange(len(knots), dtype=knots.dtype), knots)
