"""A predictive distribution of numbers: a mixture of normals, one or several for each posterior sample."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from deepwell.data.scaling import Scaling
from deepwell.model.likelihoods import Marginal
from deepwell.predict import normal_mixtures
from deepwell.predict.distribution import NumberPrediction, join_blocks, normalised

COMPONENTS_AT_ONCE = 400_000


class Mixture(NumberPrediction):
    """p(y | x) = 1/S sum_s sum_k w_sk N(y; mean_s(x), function_variance_s(x) + noise_sk(x)), for each row x.

    Gaussian noise is one k; for other noise the k are the nodes of a quadrature. Components are kept in standardised
    units, where float32 is precise enough whatever the unit and offset of y. Every answer is in the user's units,
    shaped like y, in float64. Queries work on blocks of rows, so they need little memory beyond the components.

    means: (samples, rows, targets); function_variances: (samples, rows, 1 or targets);
    noise_variances: (samples or 1, rows or 1, targets, nodes); node_weights: the same, or 1 for any of these;
    (samples or 1, targets) noise variances, and no weights, mean Gaussian noise alike in all rows.
    """

    step: ClassVar[float] = 0.0

    def __init__(
        self,
        means: np.ndarray,
        function_variances: np.ndarray,
        noise_variances: np.ndarray,
        scaling: Scaling,
        single_target: bool,
        node_weights: np.ndarray | None = None,
    ) -> None:
        self.means = means
        self.function_variances = function_variances
        self.noise_variances = noise_variances[:, None, :, None] if noise_variances.ndim == 2 else noise_variances
        self.node_weights = np.ones((1, 1, 1, 1)) if node_weights is None else node_weights
        self.scaling = scaling
        self.single_target = single_target

    @classmethod
    def from_samples(
        cls, blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
    ) -> Self:
        """Components stay in standardised units."""
        joined = join_blocks(blocks)
        weights = normalised(joined.log_weights)
        return cls(joined.mean, joined.variance, joined.noise, scaling, single_target, weights)

    def __repr__(self) -> str:
        samples, rows, targets = self.means.shape
        return f"Mixture of {samples} Gaussians for {rows} rows and {targets} target(s)"

    @property
    def mean(self) -> np.ndarray:
        """Mean of y."""
        return self._shaped(self.scaling.restore(self._by_blocks(lambda m, v, w: np.sum(w * m, -1))))

    @property
    def var(self) -> np.ndarray:
        """Variance of y: ``function_var + noise_var``."""
        return self.function_var + self.noise_var

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y."""

        def deviation(m: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
            centred = m - np.sum(w * m, -1, keepdims=True)
            return np.sqrt(np.sum(w * centred**2, -1) + np.sum(w * v, -1))

        return self._shaped(self._by_blocks(deviation) * self.scaling.scale)

    @property
    def function_var(self) -> np.ndarray:
        """Variance of the noise-free function. More data reduce it."""
        noise_free = np.zeros((1, self.means.shape[-1]))
        return Mixture(self.means, self.function_variances, noise_free, self.scaling, self.single_target).std ** 2

    @property
    def noise_var(self) -> np.ndarray:
        """Variance of the noise. More data do not reduce it."""
        noise = np.sum(self.noise_variances.astype(np.float64) * self.node_weights, -1)
        in_units = np.mean(noise, 0) * self.scaling.scale**2
        return self._shaped(np.broadcast_to(in_units, self.means.shape[1:]).copy())

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log p(y) of each row, joint over targets; standardising enters through its Jacobian."""
        nodes = self.noise_variances.shape[-1]

        def log_density(m: np.ndarray, v: np.ndarray, w: np.ndarray, z: np.ndarray) -> np.ndarray:
            per_node = -0.5 * (np.log(2.0 * np.pi * v) + (z - m) ** 2 / v) + np.log(w)
            per_sample = special.logsumexp(per_node.reshape(*m.shape[:-1], -1, nodes), axis=-1)
            return special.logsumexp(np.sum(per_sample + np.log(samples), 1), axis=-1) - np.log(samples)

        samples = len(self.means)
        return self._by_blocks(log_density, self._standardised(y)) - np.sum(np.log(self.scaling.scale))

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """P(Y <= y), per target."""
        return self._shaped(self._by_blocks(normal_mixtures.cdf, self._standardised(y)))

    def _quantile(self, q: float) -> np.ndarray:
        return self.scaling.restore(self._by_blocks(lambda m, v, w: normal_mixtures.quantile(m, v, w, q)))

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows; within one draw all rows come from the same posterior sample."""
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(self.means), size=n)
        noise = self.noise_variances[chosen % len(self.noise_variances)].astype(np.float64)
        shape = (n, *self.means.shape[1:])
        if noise.shape[-1] > 1:
            ends = np.cumsum(self.node_weights[chosen % len(self.node_weights)], -1)
            node = np.sum(rng.random((*shape, 1)) > ends[..., :-1], -1, keepdims=True)
            noise = np.take_along_axis(np.broadcast_to(noise, (*shape, noise.shape[-1])), node, -1)
        variances = self.function_variances[chosen].astype(np.float64) + noise[..., 0]
        restored = self.scaling.restore(self.means[chosen] + np.sqrt(variances) * rng.standard_normal(shape))
        return restored[..., 0] if self.single_target else restored

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2, per target; to nine digits if the noise is
        Gaussian, otherwise by a sum over 400 points."""
        score = partial(normal_mixtures.crps, coarse=self.noise_variances.shape[-1] > 1)
        return self._shaped(self._by_blocks(score, self._standardised(y)) * self.scaling.scale)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.means.shape[1], self.means.shape[2]

    def _standardised(self, y: ArrayLike) -> np.ndarray:
        return self.scaling.standardise(self._as_columns(y))

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Means, variances and weights of consecutive rows, each (rows, targets, samples * nodes)."""
        samples, nodes = len(self.means), self.noise_variances.shape[-1]
        size = max(1, COMPONENTS_AT_ONCE // (samples * nodes))
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            means = self.means[:, rows, :, None]
            noise = self.noise_variances[:, rows] if self.noise_variances.shape[1] > 1 else self.noise_variances
            weights = self.node_weights[:, rows] if self.node_weights.shape[1] > 1 else self.node_weights
            variances = self.function_variances[:, rows, :, None].astype(np.float64) + noise
            shape = (*means.shape[:3], nodes)
            means, variances, weights = (_components_last(x, shape) for x in (means, variances, weights / samples))
            yield rows, means, variances, weights


def _components_last(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """(samples, rows, targets, nodes) -> (rows, targets, samples * nodes), so that all rows are summed in one order."""
    moved = np.moveaxis(np.broadcast_to(values, shape), 0, 2)
    return np.ascontiguousarray(moved, np.float64).reshape(shape[1], shape[2], -1)
