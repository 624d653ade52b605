"""What every likelihood answers."""

import abc
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from deepwell.data.response import Kind

Marginal = Any
"""p(y | x) under one posterior sample, as the parameters of its family: ``Normals``, ``Rates`` or ``Probabilities``."""


class Likelihood(eqx.Module):
    """p(y | f), independent over rows; densities are joint over the columns of y.

    Four questions about a Gaussian q(f) = N(mean, diag variance), and a fifth for predictions: ``marginal``.
    """

    smooth: ClassVar[bool] = True
    """Whether log p(y | f) has a gradient in f that a sampler can follow."""
    response: ClassVar[Kind] = "numbers"
    """The kind of y; a class is a number 0, 1, ..."""

    @abc.abstractmethod
    def num_latents(self, num_targets: int) -> int:
        """Columns of f."""

    @abc.abstractmethod
    def log_prob(self, f: Float[Array, "n q"], y: Float[Array, "n p"]) -> Float[Array, " n"]:
        """log p(y | f)."""

    @abc.abstractmethod
    def predict_mean_and_var(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"]
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r"]]:
        """Mean and variance of y under int p(y | f) q(f) df; of the indicator of every class where y is a class."""

    @abc.abstractmethod
    def predict_log_density(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """log int p(y | f) q(f) df."""

    @abc.abstractmethod
    def variational_expectations(
        self, mean: Float[Array, "n q"], variance: Float[Array, "n q"], y: Float[Array, "n p"]
    ) -> Float[Array, " n"]:
        """int log p(y | f) q(f) df."""

    @abc.abstractmethod
    def marginal(self, mean: Float[Array, "n q"], variance: Float[Array, "n _"]) -> Marginal:
        """int p(y | f) q(f) df as a family's parameters; the variance has one column when the latents share it."""
