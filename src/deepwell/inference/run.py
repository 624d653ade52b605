"""A whole run of SGHMC on a deep GP: burn-in, then sampling, in compiled chunks."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from deepwell.data.rows import Rows
from deepwell.inference.burn_in import Tuned, burn_in, start
from deepwell.inference.problem import Config, Problem
from deepwell.inference.sampling import as_outputs, draw_samples, freeze
from deepwell.model.deep_gp import DeepGP, Outputs

CHUNK = 250

Progress = Callable[[str, int, int, float], None]
"""(phase, iterations done, iterations in all, mean training log-likelihood of the last chunk)."""


class Result(NamedTuple):
    """theta at the end of burn-in, samples of v with axes (chain, draw, ...), and the troubles met."""

    model: DeepGP
    samples: Outputs
    trace: list[tuple[int, float]]
    refused_moves: int
    refused_updates: int
    jitter_retries: int


def run(key: PRNGKeyArray, problem: Problem, rows: Rows, config: Config, progress: Progress) -> Result:
    """Burn in, then sample; only the progress report runs between chunks."""
    total = config.burn_in + config.num_samples * config.spacing
    state = start(config, problem)
    trace = []
    for done in range(0, config.burn_in, CHUNK):
        end = min(done + CHUNK, config.burn_in)
        state, fit = burn_in(config, key, problem, rows, state, jnp.asarray(done), jnp.asarray(end))
        trace.append((end, float(fit)))
        progress("burn-in", end, total, float(fit))

    tuned: Tuned = state.chains
    frozen, chains = freeze(problem, state.theta, rows, tuned.moments), tuned.chain
    samples = jnp.zeros((config.num_chains, config.num_samples, chains.position.shape[-1]), rows.X.dtype)
    each = max(1, CHUNK // config.spacing)
    for done in range(0, config.num_samples, each):
        end = min(done + each, config.num_samples)
        chains, samples, fit = draw_samples(
            config, key, frozen, rows, chains, samples, jnp.asarray(done), jnp.asarray(end)
        )
        iteration = config.burn_in + end * config.spacing
        trace.append((iteration, float(fit)))
        progress("sampling", iteration, total, float(fit))
    return Result(
        model=frozen.model,
        samples=as_outputs(frozen.model, samples),
        trace=trace,
        refused_moves=int(jnp.sum(chains.refused)),
        refused_updates=int(state.refused),
        jitter_retries=max(int(factor.retries) for factor in frozen.factors),
    )
