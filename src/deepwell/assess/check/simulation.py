"""Simulation-based calibration of the sampler (Talts, Betancourt, Simpson, Vehtari, Gelman 2018).

theta is fixed. Draw v* ~ N(0, I) and y ~ p(y | v*), hidden noise and all; sample v_1 .. v_S from p(v | y). If the
sampler is right, the rank of T(v*, y) among T(v_1, y) .. T(v_S, y) is uniform on 0 .. S, whatever the statistic T.
Here T is the function at a few inputs, the log-likelihood, and the log joint density, which sees an error in the
sampler's noise best: it sums over all coordinates of v.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from deepwell.assess.small_problems import problem_of, shallow, two_layers
from deepwell.data.rows import Rows
from deepwell.fits.presets import make_settings
from deepwell.inference.config import Config, Rates
from deepwell.inference.driver import Run, call_plainly, chunks
from deepwell.inference.problem import density_of_v
from deepwell.model.deep_gp import Batch, DeepGP, propagate
from deepwell.model.layers import Projection
from deepwell.numerics.jit import quick_jit
from deepwell.numerics.packing import Flat, Packing
from deepwell.numerics.randomness import standard_normal

DRAWS, BINS = 31, 8
"""Draws of a replication, so that there are 32 ranks, and the bins these are counted in."""
FLOOR = 1e-4
"""A p-value below this rejects uniform ranks."""
TWIN = 1.1
"""The twin's sampler assumes a noise variance this many times too large."""
ROWS = 16
X = np.linspace(-1.5, 1.5, ROWS)[:, None]
PROBES = np.array([[-1.2], [0.1], [1.7]])
FUNCTION = slice(0, len(PROBES))
STATISTICS = (*(f"f({x:.1f})" for x in PROBES[:, 0]), "log-likelihood", "log joint")
JITTER = 1e-5
BUDGET: dict[str, Any] = {"burn_in": 1_000, "spacing": 80, "step_size": 0.07, "priors": False}
BUDGET |= {"friction": 0.1, "sampling_friction": 0.1}
"""Of a chain; near critical damping, so that draws this far apart are nearly independent."""
WATCHED_SAMPLES = 16
"""Propagations behind the log-likelihood as a statistic, whatever number the sampler uses."""


class Case(NamedTuple):
    """A model to simulate and sample."""

    name: str
    model: DeepGP
    inner_samples: int = 1


class RankHistogram(NamedTuple):
    """The rank of the truth among the draws, by replication and statistic."""

    ranks: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Replications in every bin, by statistic."""
        bins = self.ranks * BINS // (DRAWS + 1)
        return np.stack([np.bincount(column, minlength=BINS) for column in bins.T])

    @property
    def p_values(self) -> np.ndarray:
        """Of a chi-square test of uniform ranks, by statistic."""
        from scipy import stats

        return stats.chisquare(self.counts, axis=1).pvalue

    @property
    def p(self) -> float:
        """The smallest of them, corrected for their number."""
        return float(min(1.0, len(STATISTICS) * np.min(self.p_values)))

    @property
    def outermost(self) -> float:
        """Share of true function values in the outermost quarter of ranks: 1/4 if calibrated; more if overconfident."""
        ends = DRAWS // BINS
        ranks = self.ranks[:, FUNCTION]
        return float(np.mean((ranks <= ends) | (ranks >= DRAWS - ends)))


def depth_one() -> Case:
    """A sparse GP: the objective is no bound but exact."""
    return Case("depth 1", shallow(np.linspace(-1.5, 1.5, 10)[:, None], jitter=JITTER))


def tight() -> Case:
    """Z_1 = X: the hidden layer has no variance left at the rows, so the bound is exact."""
    return Case("depth 2, Z_1 = X", two_layers(X[::2], 0.1, jitter=JITTER, hidden_Z=X))


def loose(inner_samples: int) -> Case:
    """Two inducing points in the hidden layer: the sampler's target is a bound, tighter with more inner samples."""
    ends = np.array([[-1.0], [1.0]])
    model = two_layers(X[::2], 0.3, jitter=JITTER, hidden_Z=ends)
    return Case(f"depth 2, loose, inner_samples {inner_samples}", model, inner_samples)


def simulate(key: PRNGKeyArray, model: DeepGP, error: Float[Array, ""]) -> tuple[Flat, Float[Array, "n 1"]]:
    """v* and y from the model, all their noise divided by sqrt(error).

    At depth 1 this divides the covariance of v | y as well, so the noise variance that the sampler assumes is
    ``error`` times too large.
    """
    v_key, hidden_key, last_key = jax.random.split(key, 3)
    outputs = Packing(model.zero_outputs())
    v = standard_normal(v_key, outputs.example.shape, outputs.example.dtype) / jnp.sqrt(error)
    prepared = model.prepare()
    first = model.layers[0].project(prepared.layers[0], jnp.asarray(X, float))
    mean, variance = propagate(model, prepared, outputs.unpack(v), first, model.hidden_noise(hidden_key, (ROWS,)))
    mean, variance = model.likelihood.predict_mean_and_var(mean, variance)
    return v, mean + jnp.sqrt(variance / error) * standard_normal(last_key, mean.shape, mean.dtype)


def statistics(config: Config, model: DeepGP, v: Flat, rows: Rows) -> Float[Array, " t"]:
    """T(v, y): the function at the probes, hidden layers at their means, the log-likelihood, the log joint."""
    outputs = Packing(model.zero_outputs())
    prepared = model.prepare()

    def project(inputs: Array) -> Projection:
        return model.layers[0].project(prepared.layers[0], inputs)

    still = tuple(jnp.zeros((layer.width,), v.dtype) for layer in model.layers[:-1])
    function, _ = propagate(model, prepared, outputs.unpack(v), project(jnp.asarray(PROBES, v.dtype)), still)
    batch = Batch(project(rows.X), rows.y, jnp.ones((ROWS,), v.dtype))
    watched = config._replace(inner_samples=WATCHED_SAMPLES)
    joint, fit = density_of_v(watched, model, prepared, batch, rows.num_data)(jax.random.key(0), v)
    return jnp.concatenate([function[:, 0], jnp.stack([fit, joint])])


def sample(config: Config, rates: Rates, key: PRNGKeyArray, model: DeepGP, rows: Rows) -> Float[Array, "s k"]:
    """v | y by the method's own phases, all of theta fixed."""
    run = Run(key, problem_of(model, ["*"]), rows, config, rates)
    *_, last = chunks(run, call_plainly, whole=True)
    return last.state.samples[0]


def replicate(
    config: Config, rates: Rates, key: PRNGKeyArray, model: DeepGP, error: Float[Array, ""]
) -> Int[Array, " t"]:
    """One replication: the rank of the truth by every statistic."""
    truth_key, sampling_key = jax.random.split(key)
    v, y = simulate(truth_key, model, error)
    rows = Rows(jnp.asarray(X, float), y, jnp.asarray(ROWS, jnp.int32))
    drawn = jax.vmap(lambda draw: statistics(config, model, draw, rows))(
        sample(config, rates, sampling_key, model, rows)
    )
    return jnp.sum(drawn < statistics(config, model, v, rows), axis=0)


def _replicate_all(
    config: Config, rates: Rates, keys: Key[Array, " r"], model: DeepGP, error: Float[Array, ""]
) -> Array:
    return jax.vmap(lambda key: replicate(config, rates, key, model, error))(keys)


replicate_all = quick_jit(_replicate_all, static_argnums=(0,))


def rank_histogram(case: Case, seed: int, replications: int, error: float = 1.0) -> RankHistogram:
    """Many replications as one program."""
    settings = make_settings(inner_samples=case.inner_samples, num_samples=DRAWS, **BUDGET)
    keys = jax.random.split(jax.random.key(seed), replications)
    config, rates = settings.config(ROWS), settings.rates(ROWS)
    return RankHistogram(np.asarray(replicate_all(config, rates, keys, case.model, jnp.asarray(error, float))))
