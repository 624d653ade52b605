"""What tests share: small problems (``deepwell.assess.small_problems``) as inference takes them, and a crash."""

import jax

from deepwell.assess.small_problems import rows_of
from deepwell.inference.config import Config, make_rates
from deepwell.inference.problem import log_joint
from deepwell.numerics.packing import Packing

CONFIG = Config(
    method="sghmc", objective="predictive", inner_samples=1, batch_size=None, subtract_gradient_noise=False,
    control_variates=False, shortest_window=0, burn_in=1, window_size=300, priors=None, num_chains=1, num_samples=1,
    spacing=1, dsvi_start=0, e_steps=500, e_samples=10, m_steps=200,
)  # fmt: skip


def rates(learning_rate=0.01):
    """The defaults of the core, at this rate of Adam."""
    return make_rates(0.01, 0.05, 0.05, learning_rate)


def flat_density(config, problem, X, y):
    """The library's own density (key, v) -> (log joint / N, mean log-likelihood) on all rows."""
    joint, theta = log_joint(config, problem, rows_of(X, y)), Packing.pack(problem.theta)
    prepared = joint.prepare(theta)
    return joint.density(theta, prepared, joint.batch(jax.random.key(0), theta, prepared))


class Crash(Exception):  # noqa: N818
    """What ``crash_at`` raises."""


def crash_at(iteration):
    """A callback that ends a fit once it has come so far."""

    def callback(event):
        if event.done >= iteration:
            raise Crash

    return callback
