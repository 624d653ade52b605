"""What tests share: small problems (``deepwell.assess.small_problems``) as inference takes them, and a crash."""

import jax
from jax.flatten_util import ravel_pytree

from deepwell.assess.small_problems import rows_of
from deepwell.inference.problem import Config, target
from deepwell.inference.sghmc import Dynamics

CONFIG = Config(
    method="sghmc", objective="predictive", inner_samples=1, batch_size=None, dynamics=Dynamics(),
    sampling_dynamics=Dynamics(), control_variates=False, shortest_window=0, burn_in=1,
    window_size=300, learning_rate=0.01, priors=None, num_chains=1, num_samples=1,
    spacing=1, dsvi_start=0, e_steps=500, e_samples=10, m_steps=200,
)  # fmt: skip


def flat_density(config, problem, X, y):
    """The library's own density (key, v) -> (log joint / N, mean log-likelihood) on all rows."""
    aim = target(config, problem, rows_of(X, y))
    theta, _ = ravel_pytree(problem.theta)
    prepared = aim.prepare(theta)
    return aim.density(theta, prepared, aim.batch(jax.random.key(0), theta, prepared))


class Crash(Exception):  # noqa: N818
    """What ``crash_at`` raises."""


def crash_at(iteration):
    """A callback that ends a fit once it has come so far."""

    def callback(event):
        if event.done >= iteration:
            raise Crash

    return callback
