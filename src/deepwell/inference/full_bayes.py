"""Everything unknown is sampled, as one vector, by the sampler that elsewhere moves v alone.

``SGHMC_BAYES``: theta and inducing inputs together with v, under priors (Rossi, Heinonen, Bonilla, Shen, Filippone
2021, "Sparse Gaussian Processes Revisited"). ``BNN``: the weights and the noise of a Bayesian neural net.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deepwell.data.rows import Rows, minibatch
from deepwell.inference import sghmc
from deepwell.inference.chains import (
    Samples,
    Tuned,
    at_rest,
    burn_in_dynamics,
    collect,
    marked,
    move_all,
    no_samples,
    sampling_dynamics,
    tuned_sampler,
)
from deepwell.inference.config import Config, Rates
from deepwell.inference.deep_gp_posteriors import OwnTheta
from deepwell.inference.keys import iteration_key
from deepwell.inference.mcem import Density
from deepwell.inference.method import Method, NumericalIssues, Phase, Traits, sampling_phase
from deepwell.inference.net_posterior import Networks
from deepwell.inference.posterior import Posterior
from deepwell.inference.problem import NetProblem, Problem, ProblemMaker, deep_gp_problem, log_joint, net_problem
from deepwell.model.priors import Priors, log_prior
from deepwell.numerics.packing import Flat, Packing


class Unknowns(NamedTuple):
    """What is sampled: where each chain starts, its log density / N on a minibatch, and what samples are worth."""

    positions: Callable[[Config, Any], Float[Array, "c k"]]
    density: Callable[[Config, Any, Rows], Density]
    posterior: Callable[[PRNGKeyArray, Any, Samples], tuple[Posterior, Array]]


class Collecting(NamedTuple):
    """The preconditioners as burn-in left them, the chains, the samples so far."""

    moments: sghmc.GradientMoments
    chains: sghmc.Chain
    samples: Samples


def full_bayes(name: str, unknowns: Unknowns, problem: ProblemMaker, traits: Traits) -> Method[Collecting]:
    """SGHMC over all unknowns: tuned in burn-in, then frozen."""

    def start(config: Config, key: PRNGKeyArray, problem: Any, rows: Rows) -> Tuned:
        return at_rest(unknowns.positions(config, problem))

    def burn_in(
        config: Config,
        rates: Rates,
        key: PRNGKeyArray,
        problem: Any,
        rows: Rows,
        state: Tuned,
        first: Int[Array, ""],
        last: Int[Array, ""],
    ) -> tuple[Tuned, Float[Array, ""]]:
        density = unknowns.density(config, problem, rows)

        def body(i: Array, carry: tuple[Tuned, Array]) -> tuple[Tuned, Array]:
            sampler = tuned_sampler(config, burn_in_dynamics(config, rates, i), rows.num_data, i)
            tuned, fit = sampler.step(iteration_key(key, i), carry[0], density)
            return tuned, carry[1] + fit

        state, total = lax.fori_loop(first, last, body, (marked(state), jnp.zeros((), rows.X.dtype)))
        return state, total / (last - first)

    def begin_sampling(config: Config, problem: Any, rows: Rows, state: Tuned) -> Collecting:
        samples = no_samples(config, state.chain.position.shape[-1], rows.X.dtype)
        return Collecting(state.moments, state.chain, samples)

    def draw_samples(
        config: Config,
        rates: Rates,
        key: PRNGKeyArray,
        problem: Any,
        rows: Rows,
        state: Collecting,
        first: Int[Array, ""],
        last: Int[Array, ""],
    ) -> tuple[Collecting, Float[Array, ""]]:
        density = unknowns.density(config, problem, rows)

        def iterate(i: Array, chains: sghmc.Chain) -> tuple[sghmc.Chain, Array]:
            dynamics = sampling_dynamics(config, rates, i)
            return move_all(config, dynamics, iteration_key(key, i), chains, state.moments, density, rows.num_data)

        chains, samples, fit = collect(config, state.chains, state.samples, first, last, iterate)
        return state._replace(chains=chains, samples=samples), fit

    def finish(config: Config, key: PRNGKeyArray, problem: Any, state: Collecting) -> tuple[Posterior, NumericalIssues]:
        posterior, retries = unknowns.posterior(key, problem, state.samples)
        none, uncounted = jnp.zeros((), jnp.int32), jnp.zeros((0,), jnp.int32)
        return posterior, NumericalIssues(jnp.sum(state.chains.refused), none, retries, uncounted)

    def phases(config: Config) -> tuple[Phase[Any], ...]:
        return (Phase("burn-in", config.burn_in, burn_in), sampling_phase(config, draw_samples, begin_sampling))

    return Method(name, start, phases, finish, problem, traits)


def _positions(config: Config, problem: Problem) -> Float[Array, "c k"]:
    """theta and v of each chain; all chains start from one theta."""
    theta = Packing.pack(problem.theta)
    v = problem.first_positions(config.num_chains)
    return jnp.concatenate([jnp.tile(theta, (config.num_chains, 1)), v], axis=1)


def _joint_density(config: Config, problem: Problem, rows: Rows) -> Density:
    """(key, (theta, v)) -> log p(y, v, theta) / N on a minibatch."""
    joint, cut = log_joint(config, problem, rows), Packing(problem.theta).size

    def density(key: PRNGKeyArray, vector: Flat) -> tuple[Array, Array]:
        batch_key, noise_key = jax.random.split(key)
        theta, v = vector[:cut], vector[cut:]
        prepared = joint.prepare(theta)
        return joint.density(theta, prepared, joint.batch(batch_key, theta, prepared))(noise_key, v)

    return density


def own_theta(key: PRNGKeyArray, problem: Problem, samples: Samples) -> tuple[OwnTheta, Array]:
    """Samples of (theta, v) as models and their inducing outputs, and the worst growth of the jitter."""
    template = problem.initial
    cut, outputs_as = Packing(problem.theta).size, Packing(template.zero_outputs())

    def one(vector: Flat) -> tuple[Float[Array, " theta"], Any, Array]:
        model = problem.model(vector[:cut])
        return Packing.pack(model), outputs_as.unpack(vector[cut:]), jnp.max(model.prepare().retries)

    parameters, outputs, retries = lax.map(lambda chain: lax.map(one, chain), samples)
    noise = template.hidden_noise(key, samples.shape[:2])
    return OwnTheta(template, parameters, outputs, noise), jnp.max(retries)


SGHMC_BAYES = full_bayes(
    "sghmc-bayes", Unknowns(_positions, _joint_density, own_theta), deep_gp_problem, Traits(samples_theta=True)
)


def _weights(config: Config, problem: NetProblem) -> Float[Array, "c k"]:
    nets = jax.vmap(Packing.pack)(problem.nets)
    return nets[jnp.arange(config.num_chains) % len(nets)]


def _net_density(config: Config, problem: NetProblem, rows: Rows) -> Density:
    """(key, weights and noise) -> log p(y, W, b, noise) / N on a minibatch."""
    nets = Packing(problem.template)
    priors = config.priors or Priors()

    def density(key: PRNGKeyArray, vector: Flat) -> tuple[Array, Array]:
        net = nets.unpack(vector)
        (X, y), weight = minibatch(key, (rows.X, rows.y), rows.num_data, config.batch_size)
        fit = jnp.sum(weight * net.likelihood.log_prob(net(X), y)) / jnp.sum(weight)
        prior = net.log_prior_weights() + log_prior(net.likelihood, net.likelihood, priors)
        return fit + prior / rows.num_data.astype(fit.dtype), fit

    return density


def _networks(key: PRNGKeyArray, problem: NetProblem, samples: Samples) -> tuple[Networks, Array]:
    return Networks(problem.template, samples), jnp.zeros((), jnp.int32)


BNN = full_bayes(
    "bnn",
    Unknowns(_weights, _net_density, _networks),
    net_problem,
    Traits(samples_theta=True, needs_smooth_likelihood=True, defaults={"shortest_window": 1_000}),
)
