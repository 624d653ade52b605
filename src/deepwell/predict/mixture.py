"""A predictive distribution: one Gaussian a posterior sample, mixed with equal weights, in the user's units."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special

from deepwell.data.errors import InputError
from deepwell.data.scaling import Scaling

COMPONENTS_AT_ONCE = 400_000
NEWTON_STEPS = 60


class Mixture:
    """p(y | x) = 1/S sum_s N(y; mean_s(x), function_variance_s(x) + noise), for each row x.

    Components are kept in standardised units (float32 is enough there, whatever the unit and offset of
    y); every answer is in the user's units, shaped like y, in float64. Queries work on blocks of rows, so
    a million rows need no more memory than the components themselves.

    means: (samples, rows, targets); function_variances: (samples, rows, 1 or targets);
    noise_variances: (samples or 1, targets).
    """

    def __init__(
        self,
        means: np.ndarray,
        function_variances: np.ndarray,
        noise_variances: np.ndarray,
        scaling: Scaling,
        single_target: bool,
    ) -> None:
        self.means = means
        self.function_variances = function_variances
        self.noise_variances = noise_variances
        self.scaling = scaling
        self.single_target = single_target

    def __len__(self) -> int:
        return self.means.shape[1]

    def __repr__(self) -> str:
        samples, rows, targets = self.means.shape
        return f"Mixture of {samples} Gaussians for {rows} rows and {targets} target(s)"

    @property
    def mean(self) -> np.ndarray:
        """Mean of y."""
        return self._shaped(self.scaling.restore(self._over_rows(lambda m, v: np.mean(m, -1))))

    @property
    def var(self) -> np.ndarray:
        """Variance of y: ``function_var + noise_var``."""
        return self.function_var + self.noise_var

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y."""
        standard = self._over_rows(lambda m, v: np.sqrt(np.var(m, -1) + np.mean(v, -1)))
        return self._shaped(standard * self.scaling.scale)

    @property
    def function_var(self) -> np.ndarray:
        """What the model does not know: the variance of the noise-free function."""
        noise_free = Mixture(
            self.means, self.function_variances, np.zeros_like(self.noise_variances), self.scaling, self.single_target
        )
        return noise_free.std**2

    @property
    def noise_var(self) -> np.ndarray:
        """What no model could know: the variance of the noise."""
        noise = np.mean(self._noise(), 0) * self.scaling.scale**2
        return self._shaped(np.broadcast_to(noise[0], self.means.shape[1:]).copy())

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log p(y) of each row, joint over targets; standardising enters through its Jacobian."""

        def log_density(m: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
            per_sample = -0.5 * np.sum(np.log(2.0 * np.pi * v) + (z - m) ** 2 / v, 1)
            return special.logsumexp(per_sample, axis=-1) - np.log(m.shape[-1])

        return self._over_rows(log_density, self._standardised(y)) - np.sum(np.log(self.scaling.scale))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y <= y), per target."""
        return self._shaped(self._over_rows(_mixture_cdf, self._standardised(y)))

    def quantile(self, q: float) -> np.ndarray:
        """The y with P(Y <= y) = q, per target: Newton steps kept inside a shrinking bracket."""
        if not 0.0 < q < 1.0:
            raise InputError(f"a quantile must lie strictly between 0 and 1, not at {q}")
        return self._shaped(self.scaling.restore(self._over_rows(lambda m, v: _mixture_quantile(m, v, q))))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval with this probability."""
        if not 0.0 < level < 1.0:
            raise InputError(f"an interval's level must lie strictly between 0 and 1, not at {level}")
        return self.quantile(0.5 - level / 2.0), self.quantile(0.5 + level / 2.0)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """``n`` draws of y for all rows; within one draw all rows come from the same posterior sample."""
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(self.means), size=n)
        variances = self.function_variances[chosen].astype(np.float64) + self._noise()[chosen % len(self._noise())]
        draws = self.means[chosen] + np.sqrt(variances) * rng.standard_normal((n, *self.means.shape[1:]))
        restored = self.scaling.restore(draws)
        return restored[..., 0] if self.single_target else restored

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2 in closed form, per target."""
        return self._shaped(self._over_rows(_mixture_crps, self._standardised(y), unit=self.scaling.scale))

    def _noise(self) -> np.ndarray:
        """(samples or 1, 1, targets)."""
        return self.noise_variances.astype(np.float64)[:, None, :]

    def _standardised(self, y: np.ndarray) -> np.ndarray:
        values = np.asarray(y, np.float64)
        if values.ndim == 1 and self.single_target:
            values = values[:, None]
        if values.shape != self.means.shape[1:]:
            raise InputError(f"y has shape {np.shape(y)}, but predictions are for {self.means.shape[1:]}")
        return self.scaling.standardise(values)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        size = max(1, COMPONENTS_AT_ONCE // len(self.means))
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            means = _samples_last(self.means[:, rows])
            variances = _samples_last(self.function_variances[:, rows] + self._noise())
            yield rows, means, np.broadcast_to(variances, means.shape)

    def _over_rows(
        self, function: Callable[..., np.ndarray], y: np.ndarray | None = None, unit: np.ndarray | float = 1.0
    ) -> np.ndarray:
        parts = [
            function(means, variances) if y is None else function(means, variances, y[rows, :, None])
            for rows, means, variances in self._blocks()
        ]
        return np.concatenate(parts) * unit

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.single_target else values


def _samples_last(values: np.ndarray) -> np.ndarray:
    """(samples, rows, targets) -> (rows, targets, samples): every row is then summed in the same order."""
    return np.ascontiguousarray(np.moveaxis(values, 0, -1), np.float64)


def _mixture_cdf(means: np.ndarray, variances: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.mean(special.ndtr((y - means) / np.sqrt(variances)), -1)


def _mixture_pdf(means: np.ndarray, variances: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.mean(np.exp(-0.5 * (y - means) ** 2 / variances) / np.sqrt(2.0 * np.pi * variances), -1)


def _mixture_quantile(means: np.ndarray, variances: np.ndarray, q: float) -> np.ndarray:
    """The quantile of a mixture lies between the least and the greatest quantile of its components."""
    components = means + np.sqrt(variances) * special.ndtri(q)
    low, high = np.min(components, -1), np.max(components, -1)
    y = np.mean(components, -1)
    settled = np.zeros(y.shape, bool)
    for _ in range(NEWTON_STEPS):
        excess = _mixture_cdf(means, variances, y[..., None]) - q
        slope = _mixture_pdf(means, variances, y[..., None])
        low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
        newton = y - excess / np.where(slope > 0.0, slope, np.inf)
        inside = (newton > low) & (newton < high) & (slope > 0.0)
        moved = np.where(settled, y, np.where(inside, newton, 0.5 * (low + high)))
        settled |= np.abs(moved - y) < 1e-12 * (1.0 + np.abs(y))
        y = moved
        if np.all(settled):
            break
    return y


def _absolute_moment(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E|X| for X ~ N(mean, variance)."""
    std = np.sqrt(variance)
    ratio = mean / std
    return mean * (2.0 * special.ndtr(ratio) - 1.0) + std * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * ratio**2)


def _mixture_crps(means: np.ndarray, variances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """E|Y - y| - E|Y - Y'|/2; pairs of components a fixed distance apart in the list are taken together."""
    to_y = np.mean(_absolute_moment(means - y, variances), -1)
    count = means.shape[-1]
    between = np.zeros_like(to_y)
    for shift in range(count // 2 + 1):
        weight = 1.0 if shift == 0 or 2 * shift == count else 2.0
        others = np.roll(means, shift, -1), np.roll(variances, shift, -1)
        between += weight * np.sum(_absolute_moment(means - others[0], variances + others[1]), -1)
    return to_y - 0.5 * between / count**2
