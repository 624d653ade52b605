"""Everything unknown is sampled, as one vector, by the sampler that elsewhere moves v alone.

``DEEP_GP``: theta and inducing inputs together with v, under priors (Rossi, Heinonen, Bonilla, Shen, Filippone 2021,
"Sparse Gaussian Processes Revisited"). ``NET``: the weights and the noise of a Bayesian neural net.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference import sghmc
from deepwell.inference.chains import Samples, Tuned, at_rest, collect, marked, move_all, no_samples, tuned_sampler
from deepwell.inference.mcem import Density
from deepwell.inference.method import Method, Phase, Troubles, sampling_phase
from deepwell.inference.posterior import Networks, OwnTheta, Posterior
from deepwell.inference.problem import Config, Flat, NetProblem, Problem, most_retries, target
from deepwell.model.priors import Priors, log_prior


class Unknowns(NamedTuple):
    """What is sampled: where each chain starts, its log density / N on a minibatch, and what samples are worth."""

    positions: Callable[[Config, Any], Float[Array, "c k"]]
    density: Callable[[Config, Any, Rows], Density]
    posterior: Callable[[PRNGKeyArray, Any, Samples], tuple[Posterior, Array]]


class Sampling(NamedTuple):
    """The preconditioners as burn-in left them, the chains, the samples so far."""

    moments: sghmc.Moments
    chains: sghmc.Chain
    samples: Samples


def full_bayes(unknowns: Unknowns) -> Method:
    """SGHMC over all unknowns: tuned in burn-in, then frozen."""

    def start(config: Config, key: PRNGKeyArray, problem: Any, rows: Rows) -> Tuned:
        return at_rest(unknowns.positions(config, problem))

    def burn_in(
        config: Config,
        key: PRNGKeyArray,
        problem: Any,
        rows: Rows,
        state: Tuned,
        first: Int[Array, ""],
        last: Int[Array, ""],
    ) -> tuple[Tuned, Float[Array, ""]]:
        density = unknowns.density(config, problem, rows)

        def body(i: Array, carry: tuple[Tuned, Array]) -> tuple[Tuned, Array]:
            sampler = tuned_sampler(config, rows.num_data, i)
            tuned, fit = sampler.step(jax.random.fold_in(key, i), carry[0], density)
            return tuned, carry[1] + fit

        state, total = lax.fori_loop(first, last, body, (marked(state), jnp.zeros((), rows.X.dtype)))
        return state, total / (last - first)

    def begin_sampling(config: Config, problem: Any, rows: Rows, state: Tuned) -> Sampling:
        samples = no_samples(config, state.chain.position.shape[-1], rows.X.dtype)
        return Sampling(state.moments, state.chain, samples)

    def draw_samples(
        config: Config,
        key: PRNGKeyArray,
        problem: Any,
        rows: Rows,
        state: Sampling,
        first: Int[Array, ""],
        last: Int[Array, ""],
    ) -> tuple[Sampling, Float[Array, ""]]:
        density = unknowns.density(config, problem, rows)

        def iterate(i: Array, chains: sghmc.Chain) -> tuple[sghmc.Chain, Array]:
            return move_all(config, jax.random.fold_in(key, i), chains, state.moments, density, rows.num_data)

        chains, samples, fit = collect(config, state.chains, state.samples, first, last, iterate)
        return state._replace(chains=chains, samples=samples), fit

    def finish(config: Config, key: PRNGKeyArray, problem: Any, state: Sampling) -> tuple[Posterior, Troubles]:
        posterior, retries = unknowns.posterior(key, problem, state.samples)
        none, uncounted = jnp.zeros((), jnp.int32), jnp.zeros((0,), jnp.int32)
        return posterior, Troubles(jnp.sum(state.chains.refused), none, retries, uncounted)

    def phases(config: Config) -> tuple[Phase, ...]:
        return (Phase("burn-in", config.burn_in, burn_in), sampling_phase(config, draw_samples, begin_sampling))

    return Method(start, phases, finish)


def _positions(config: Config, problem: Problem) -> Float[Array, "c k"]:
    """theta and v of each chain; all chains start from one theta."""
    theta, _ = ravel_pytree(problem.theta)
    v = problem.first_positions(config.num_chains)
    return jnp.concatenate([jnp.tile(theta, (config.num_chains, 1)), v], axis=1)


def _joint_density(config: Config, problem: Problem, rows: Rows) -> Density:
    """(key, (theta, v)) -> log p(y, v, theta) / N on a minibatch."""
    aim = target(config, problem, rows)
    cut = ravel_pytree(problem.theta)[0].size

    def density(key: PRNGKeyArray, vector: Flat) -> tuple[Array, Array]:
        batch_key, noise_key = jax.random.split(key)
        theta, v = vector[:cut], vector[cut:]
        prepared = aim.prepare(theta)
        return aim.density(theta, prepared, aim.batch(batch_key, theta, prepared))(noise_key, v)

    return density


def own_theta(key: PRNGKeyArray, problem: Problem, samples: Samples) -> tuple[OwnTheta, Array]:
    """Samples of (theta, v) as models and their inducing outputs, and the worst growth of the jitter."""
    template = problem.initial
    cut = ravel_pytree(problem.theta)[0].size
    _, unravel = ravel_pytree(template.zero_outputs())

    def one(vector: Flat) -> tuple[Flat, Any, Array]:
        model = problem.model(vector[:cut])
        return ravel_pytree(model)[0], unravel(vector[cut:]), most_retries(model.factors())

    parameters, outputs, retries = lax.map(lambda chain: lax.map(one, chain), samples)
    noise = template.hidden_noise(key, samples.shape[:2])
    return OwnTheta(template, parameters, outputs, noise), jnp.max(retries)


DEEP_GP = full_bayes(Unknowns(_positions, _joint_density, own_theta))


def _weights(config: Config, problem: NetProblem) -> Float[Array, "c k"]:
    nets = jax.vmap(lambda net: ravel_pytree(net)[0])(problem.nets)
    return nets[jnp.arange(config.num_chains) % len(nets)]


def _net_density(config: Config, problem: NetProblem, rows: Rows) -> Density:
    """(key, weights and noise) -> log p(y, W, b, noise) / N on a minibatch."""
    _, unravel = ravel_pytree(problem.template)
    priors = config.priors or Priors()

    def density(key: PRNGKeyArray, vector: Flat) -> tuple[Array, Array]:
        net = unravel(vector)
        (X, y), weight = minibatch(key, (rows.X, rows.y), rows.num_data, config.batch_size)
        fit = jnp.sum(weight * net.likelihood.log_prob(net(X), y)) / jnp.sum(weight)
        prior = net.log_prior_weights() + log_prior(net.likelihood, net.likelihood, priors)
        return fit + prior / rows.num_data.astype(fit.dtype), fit

    return density


def _networks(key: PRNGKeyArray, problem: NetProblem, samples: Samples) -> tuple[Networks, Array]:
    return Networks(problem.template, samples), jnp.zeros((), jnp.int32)


NET = full_bayes(Unknowns(_weights, _net_density, _networks))
