"""A predictive distribution of counts: a mixture of negative binomials, several for each posterior sample."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from deepwell.data.scaling import Scaling
from deepwell.model.likelihoods import Marginal
from deepwell.predict.distribution import NumberPrediction, join_blocks, normalised

BISECTIONS = 80
COMPONENTS_AT_ONCE = 400_000
NEARLY_POISSON = 1e-4
"""Below this product of dispersion and rate a negative binomial is computed as a Poisson, which is cheaper."""
DRAWS = 2_000


class CountMixture(NumberPrediction):
    """P(y | x) = 1/S sum_s sum_k w_k NB(y; rate_sk(x), dispersion_s(x)), for each row x.

    NB has mean rate and variance rate + dispersion rate^2; it is a Poisson where the dispersion is zero. The k are the
    nodes of a quadrature over the log rate. rates: (samples, rows, targets, nodes); dispersion: (samples, rows,
    targets); node_weights: (nodes,).
    """

    step: ClassVar[float] = 1.0

    def __init__(
        self, rates: np.ndarray, dispersion: np.ndarray, node_weights: np.ndarray, single_target: bool
    ) -> None:
        self.rates = rates
        self.dispersion = dispersion
        self.node_weights = node_weights
        self.single_target = single_target

    @classmethod
    def from_samples(
        cls, blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
    ) -> Self:
        """Counts are not scaled."""
        joined = join_blocks(blocks)
        weights = normalised(joined.log_weights)[0, 0, 0]
        return cls(np.asarray(joined.rates), np.asarray(joined.dispersion), weights, single_target)

    def __repr__(self) -> str:
        samples, rows, targets, _ = self.rates.shape
        return f"CountMixture of {samples} samples for {rows} rows and {targets} target(s)"

    @property
    def mean(self) -> np.ndarray:
        """Mean of y."""
        return self._shaped(self._by_blocks(lambda r, d, w: np.sum(w * r, -1)))

    @property
    def var(self) -> np.ndarray:
        """Variance of y: that of the rate plus the mean, which is the variance of a Poisson count."""
        return self.rate_var + self.mean

    @property
    def rate_var(self) -> np.ndarray:
        """Variance of the rate. More data reduce it."""

        def variance(r: np.ndarray, d: np.ndarray, w: np.ndarray) -> np.ndarray:
            return np.sum(w * (d * r**2 + (r - np.sum(w * r, -1, keepdims=True)) ** 2), -1)

        return self._shaped(self._by_blocks(variance))

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y."""
        return np.sqrt(self.var)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log P(y) of each row, joint over targets; minus infinity where y is not a count."""
        samples, nodes = len(self.rates), self.rates.shape[-1]

        def log_mass(r: np.ndarray, d: np.ndarray, w: np.ndarray, k: np.ndarray) -> np.ndarray:
            per_node = _log_mass(r, d, k) + np.log(w)
            per_sample = special.logsumexp(per_node.reshape(*r.shape[:-1], samples, nodes), axis=-1)
            return special.logsumexp(np.sum(per_sample + np.log(samples), 1), axis=-1) - np.log(samples)

        return self._by_blocks(log_mass, self._as_columns(y))

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """P(Y <= y), per target."""
        return self._shaped(self._by_blocks(_cdf, self._as_columns(y)))

    def _quantile(self, q: float) -> np.ndarray:
        return self._by_blocks(lambda r, d, w: _quantile(r, d, w, q))

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows; within one draw all rows come from the same posterior sample."""
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(self.rates), size=n)
        draws = np.stack([_draw(rng, self.rates[s], self.dispersion[s], self.node_weights) for s in chosen])
        return draws[..., 0] if self.single_target else draws

    def crps(self, y: ArrayLike) -> np.ndarray:
        """E|Y - y| - E|Y - Y'| / 2, per target, from 2,000 draws a row, spread evenly over the posterior samples."""
        counts = self._as_columns(y)
        rng = np.random.default_rng(0)
        chosen = np.arange(DRAWS) % len(self.rates)
        scores = np.empty_like(counts)
        for rows, *_ in self._blocks():
            rates, dispersion = self.rates[:, rows], self.dispersion[:, rows]
            draws = np.sort([_draw(rng, rates[s], dispersion[s], self.node_weights) for s in chosen], axis=0)
            rank = 2.0 * np.arange(1, DRAWS + 1)[:, None, None] - DRAWS - 1.0
            between = 2.0 * np.sum(rank * draws, 0) / (DRAWS * (DRAWS - 1.0))  # mean of |Y - Y'| over pairs
            scores[rows] = np.mean(np.abs(draws - counts[rows]), 0) - 0.5 * between
        return self._shaped(scores)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.rates.shape[1], self.rates.shape[2]

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Rates, dispersions and weights of consecutive rows, each (rows, targets, samples * nodes)."""
        samples, nodes = len(self.rates), self.rates.shape[-1]
        size = max(1, COMPONENTS_AT_ONCE // (samples * nodes))
        weights = np.tile(self.node_weights.astype(np.float64), samples) / samples
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            rates = self.rates[:, rows].astype(np.float64)
            dispersion = np.broadcast_to(self.dispersion[:, rows, :, None].astype(np.float64), rates.shape)
            rates, dispersion = (
                np.moveaxis(x, 0, 2).reshape(rates.shape[1], rates.shape[2], -1) for x in (rates, dispersion)
            )
            yield rows, rates, dispersion, weights


def _log_mass(rates: np.ndarray, dispersion: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log of Gamma(y + r) / (Gamma(r) y!) (r / (r + rate))^r (rate / (r + rate))^y with r = 1 / dispersion."""
    is_count = (y >= 0.0) & (y == np.floor(y))
    k = np.where(is_count, y, 0.0)
    poisson = special.xlogy(k, rates) - rates - special.gammaln(k + 1.0)
    d = np.maximum(dispersion, 1e-12)
    r = 1.0 / d
    wide = -special.betaln(k + 1.0, r) - np.log(k + r) - r * np.log1p(d * rates) - k * np.log1p(1.0 / (d * rates))
    return np.where(is_count, np.where(dispersion * rates < NEARLY_POISSON, poisson, wide), -np.inf)


def _cdf(rates: np.ndarray, dispersion: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    k = np.broadcast_to(np.floor(np.maximum(y, 0.0)), rates.shape)
    below = np.empty_like(rates)
    plain = dispersion * rates < NEARLY_POISSON
    below[plain] = special.gammaincc(k[plain] + 1.0, rates[plain])
    wide = ~plain
    r = 1.0 / dispersion[wide]
    below[wide] = special.betainc(r, k[wide] + 1.0, r / (r + rates[wide]))
    return np.sum(weights * np.where(y < 0.0, 0.0, below), -1)


def _quantile(rates: np.ndarray, dispersion: np.ndarray, weights: np.ndarray, q: float) -> np.ndarray:
    """Bisection on whole numbers, from far above the largest component."""
    largest = np.max(rates + 50.0 * np.sqrt(rates + dispersion * rates**2), -1)
    low, high = np.full(largest.shape, -1.0), np.ceil(largest + 50.0)
    for _ in range(BISECTIONS):
        middle = np.floor(0.5 * (low + high))
        enough = _cdf(rates, dispersion, weights, middle[..., None]) >= q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        if np.all(high - low <= 1.0):
            break
    return high


def _draw(rng: np.random.Generator, rates: np.ndarray, dispersion: np.ndarray, node_weights: np.ndarray) -> np.ndarray:
    """One draw for every row of one posterior sample: a node, then a gamma rate around its rate, then a Poisson."""
    node = rng.choice(rates.shape[-1], size=(*rates.shape[:-1], 1), p=node_weights)
    rate = np.take_along_axis(rates, node, -1)[..., 0].astype(np.float64)
    shape = 1.0 / np.maximum(dispersion, 1e-12)
    return rng.poisson(rate * rng.gamma(shape) / shape).astype(np.float64)
