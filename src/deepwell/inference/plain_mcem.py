"""Plain MCEM (Wei, Tanner 1990), which Moving Window MCEM improves on.

E-step: many sampler steps at fixed theta, a few samples kept. M-step: Adam on the mean of the log joint over these
samples, Q(theta) = 1/m sum_i log p(y, v_i | theta), until it no longer climbs or its steps are used up.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows
from deepwell.inference import mcem, moving_window
from deepwell.inference import window as windows
from deepwell.inference.chains import Tuned, burn_in_dynamics, marked, tuned_sampler
from deepwell.inference.config import Config, Rates
from deepwell.inference.keys import iteration_key, m_step_key
from deepwell.inference.method import Method, Phase, Traits, sampling_phase
from deepwell.inference.optimiser import adam_at
from deepwell.inference.problem import Problem, deep_gp_problem, log_joint
from deepwell.numerics.packing import Flat
from deepwell.numerics.trees import keep_finite

LOOK_BACK = 20
TOLERANCE = 1e-3
"""The M-step has converged when Q/N, averaged over LOOK_BACK steps, climbed by less than this since the last look."""


class Climb(NamedTuple):
    """An M-step under way; the two averages of Q/N decide whether it goes on."""

    steps: Int[Array, ""]
    theta: Flat
    optimiser: object
    refused: Int[Array, ""]
    total: Float[Array, ""]
    before: Float[Array, ""]
    climbing: Array


def burn_in(
    config: Config,
    rates: Rates,
    key: PRNGKeyArray,
    problem: Problem,
    rows: Rows,
    state: mcem.State,
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> tuple[mcem.State, Float[Array, ""]]:
    """The rounds whose E-steps are sampler steps ``first`` up to ``last``; an unfinished round has a shorter E-step."""
    joint = log_joint(config, problem, rows)

    def e_step(state: mcem.State) -> tuple[Tuned, Array, Array]:
        prepared = joint.prepare(state.theta)
        gap = max(1, config.e_steps // config.e_samples)

        def body(i: Array, carry: tuple[Tuned, Array, Array]) -> tuple[Tuned, Array, Array]:
            chains, kept, total = carry
            batch_key, step_key = jax.random.split(iteration_key(key, i))
            density = joint.density(state.theta, prepared, joint.batch(batch_key, state.theta, prepared))
            sampler = tuned_sampler(config, burn_in_dynamics(config, rates, i), rows.num_data, i)
            chains, fit = sampler.step(step_key, chains, density)
            slot = ((i - first) // gap) % config.e_samples  # a slot keeps the last state of its gap
            return chains, kept.at[slot].set(chains.chain.position), total + fit

        position = state.chains.chain.position
        kept = jnp.broadcast_to(position, (config.e_samples, *position.shape))
        return lax.fori_loop(first, last, body, (marked(state.chains), kept, jnp.zeros((), position.dtype)))

    def m_step(state: mcem.State, kept: Array) -> mcem.State:
        samples = kept.reshape(-1, kept.shape[-1])
        step_keys, optimiser = m_step_key(key, last), adam_at(config, rates, last)

        def loss(theta: Flat, step_key: PRNGKeyArray) -> Array:
            batch_key, *noise_keys = jax.random.split(step_key, 1 + len(samples))
            prepared = joint.prepare(theta)
            density = joint.density(theta, prepared, joint.batch(batch_key, theta, prepared))
            return -jnp.mean(jax.vmap(lambda k, v: density(k, v)[0])(jnp.stack(noise_keys), samples))

        def climb(c: Climb) -> Climb:
            value, gradient = jax.value_and_grad(loss)(c.theta, iteration_key(step_keys, c.steps))
            updates, moved = optimiser.update(gradient, c.optimiser)
            new, old = (c.theta + updates, moved), (c.theta, c.optimiser)
            (theta, moved), refused = keep_finite(new, old, updates, gradient)
            steps, total = c.steps + 1, c.total - value
            look = steps % LOOK_BACK == 0
            average = total / LOOK_BACK
            return Climb(
                steps,
                theta,
                moved,
                c.refused + refused,
                jnp.where(look, jnp.zeros_like(total), total),
                jnp.where(look, average, c.before),
                ~look | (average > c.before + TOLERANCE),
            )

        zero = jnp.zeros((), samples.dtype)
        begun = Climb(
            jnp.zeros((), jnp.int32), state.theta, state.optimiser, state.refused, zero, zero - jnp.inf, jnp.array(True)
        )
        done = lax.while_loop(lambda c: c.climbing & (c.steps < config.m_steps), climb, begun)
        return state._replace(theta=done.theta, optimiser=done.optimiser, refused=done.refused)

    chains, kept, total = e_step(state)
    window = windows.push(state.window, jnp.mean(kept, 0))  # where the control variates of sampling will be
    noted = state.noted + joint.note(joint.prepare(state.theta))
    state = m_step(state._replace(chains=chains, window=window, noted=noted), kept)
    return state, total / (last - first)


def phases(config: Config) -> tuple[Phase[Any], ...]:
    """Perhaps a warm start, then rounds of MCEM, then sampling; a chunk is one round."""
    enter = moving_window.after_warm_start if config.dsvi_start else None
    return (
        *moving_window.warm_start_phases(config),
        Phase("burn-in", config.burn_in, burn_in, enter, chunk=config.e_steps),
        sampling_phase(config, moving_window.draw_samples, moving_window.begin_sampling, moving_window.freeze),
    )


MCEM = Method(
    "mcem",
    moving_window.start,
    phases,
    moving_window.finish,
    deep_gp_problem,
    Traits(shares_theta=True, imposed={"window_size": 1}),
)
