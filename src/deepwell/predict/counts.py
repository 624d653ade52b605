"""A predictive distribution of counts: Poisson distributions, some a posterior sample, mixed."""

from collections.abc import Callable

import numpy as np
from scipy import special

from deepwell.data.errors import InputError

BISECTIONS = 80
COMPONENTS_AT_ONCE = 400_000
TAIL = 1e-9


class CountMixture:
    """P(y | x) = 1/S sum_s sum_k w_k Poisson(y; rate_sk(x)), for each row x; the k are the nodes of a quadrature.

    rates: (samples, rows, targets, nodes); node_weights: (nodes,).
    """

    def __init__(self, rates: np.ndarray, node_weights: np.ndarray, single_target: bool) -> None:
        self.rates = rates
        self.node_weights = node_weights
        self.single_target = single_target

    def __len__(self) -> int:
        return self.rates.shape[1]

    def __repr__(self) -> str:
        samples, rows, targets, _ = self.rates.shape
        return f"CountMixture of {samples} samples for {rows} rows and {targets} target(s)"

    @property
    def mean(self) -> np.ndarray:
        """Mean of y."""
        return self._shaped(self._over_rows(lambda r, w: np.sum(w * r, -1)))

    @property
    def var(self) -> np.ndarray:
        """Variance of y: that of the rate, and the mean, which is the variance of a Poisson count."""
        return self.rate_var + self.mean

    @property
    def rate_var(self) -> np.ndarray:
        """What the model does not know: the variance of the rate."""
        return self._shaped(self._over_rows(lambda r, w: np.sum(w * (r - np.sum(w * r, -1, keepdims=True)) ** 2, -1)))

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y."""
        return np.sqrt(self.var)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log P(y) of each row, joint over targets."""
        samples, nodes = len(self.rates), self.rates.shape[-1]

        def log_mass(r: np.ndarray, w: np.ndarray, k: np.ndarray) -> np.ndarray:
            per_node = special.xlogy(k, r) - r - special.gammaln(k + 1.0) + np.log(w)
            per_sample = special.logsumexp(per_node.reshape(*r.shape[:-1], samples, nodes), axis=-1)
            return special.logsumexp(np.sum(per_sample + np.log(samples), 1), axis=-1) - np.log(samples)

        return self._over_rows(log_mass, self._counts(y))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y <= y), per target."""
        return self._shaped(self._over_rows(_cdf, self._counts(y)))

    def quantile(self, q: float) -> np.ndarray:
        """The least count with P(Y <= count) >= q, per target."""
        if not 0.0 < q < 1.0:
            raise InputError(f"a quantile must lie strictly between 0 and 1, not at {q}")
        return self._shaped(self._over_rows(lambda r, w: _quantile(r, w, q)))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Counts between which y lies with at least this probability."""
        if not 0.0 < level < 1.0:
            raise InputError(f"an interval's level must lie strictly between 0 and 1, not at {level}")
        return self.quantile(0.5 - level / 2.0), self.quantile(0.5 + level / 2.0)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows; within one draw all rows come from the same posterior sample."""
        rng = np.random.default_rng(seed)
        rates = self.rates[rng.integers(len(self.rates), size=n)]
        node = rng.choice(rates.shape[-1], size=(*rates.shape[:-1], 1), p=self.node_weights)
        draws = rng.poisson(np.take_along_axis(rates, node, -1)[..., 0].astype(np.float64))
        return draws[..., 0] if self.single_target else draws

    def crps(self, y: np.ndarray) -> np.ndarray:
        """sum_k (P(Y <= k) - 1{y <= k})^2, per target, over counts from the lower to the upper tail."""
        counts = self._counts(y)
        return self._shaped(self._over_rows(_crps, counts))

    def _counts(self, y: np.ndarray) -> np.ndarray:
        values = np.asarray(y, np.float64)
        if values.ndim == 1 and self.single_target:
            values = values[:, None]
        if values.shape != self.rates.shape[1:3]:
            raise InputError(f"y has shape {np.shape(y)}, but predictions are for {self.rates.shape[1:3]}")
        return values

    def _over_rows(self, function: Callable[..., np.ndarray], y: np.ndarray | None = None) -> np.ndarray:
        samples, nodes = len(self.rates), self.rates.shape[-1]
        size = max(1, COMPONENTS_AT_ONCE // (samples * nodes))
        weights = np.tile(self.node_weights.astype(np.float64), samples) / samples
        parts = []
        for start in range(0, len(self), size):
            block = np.moveaxis(self.rates[:, start : start + size].astype(np.float64), 0, 2)
            block = block.reshape(*block.shape[:2], -1)
            parts.append(
                function(block, weights) if y is None else function(block, weights, y[start : start + size, :, None])
            )
        return np.concatenate(parts)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.single_target else values


def _cdf(rates: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    below = np.where(y < 0.0, 0.0, special.gammaincc(np.floor(np.maximum(y, 0.0)) + 1.0, rates))
    return np.sum(weights * below, -1)


def _quantile(rates: np.ndarray, weights: np.ndarray, q: float) -> np.ndarray:
    """Bisection on whole numbers, from far beyond the largest rate."""
    largest = np.max(rates, -1)
    low, high = np.full(largest.shape, -1.0), np.ceil(largest + 50.0 * np.sqrt(largest) + 50.0)
    for _ in range(BISECTIONS):
        middle = np.floor(0.5 * (low + high))
        enough = _cdf(rates, weights, middle[..., None]) >= q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        if np.all(high - low <= 1.0):
            break
    return high


def _crps(rates: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Summed in strides where there are very many counts: the distribution function is then smooth."""
    y = y[..., 0]
    low = np.minimum(_quantile(rates, weights, TAIL), y)
    high = np.maximum(_quantile(rates, weights, 1.0 - TAIL), y)
    stride = np.maximum(1.0, np.floor((high - low) / 2_000.0))
    total = np.zeros_like(y)
    for k in range(int(np.max((high - low) / stride)) + 1):
        count = low + k * stride
        term = (_cdf(rates, weights, count[..., None]) - (y <= count)) ** 2
        total += np.where(count <= high, stride * term, 0.0)
    return total
