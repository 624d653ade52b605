"""The optimiser of hyperparameters: Adam, as in the paper."""

from typing import Any

from jaxtyping import Array, Float, Int

from deepwell.inference.config import Config, Rates, rate_at
from deepwell.numerics.promotion import usual_promotion


def adam(rate: Float[Array, ""] | float = 0.0) -> Any:
    """Adam at this rate; its state does not depend on the rate."""
    import optax

    algorithm = optax.adam(rate)
    return optax.GradientTransformation(algorithm.init, usual_promotion(algorithm.update))


def adam_at(config: Config, rates: Rates, iteration: Int[Array, ""]) -> Any:
    """Adam at the rate of an iteration of burn-in."""
    return adam(rate_at(rates.learning_rate, iteration, config.burn_in))
