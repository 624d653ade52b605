"""SGHMC against the No-U-Turn Sampler on a small problem, on function values, within Monte Carlo error."""

from typing import Any, NamedTuple

import numpy as np

from deepwell.errors import is_installed
from deepwell.fits.fit import fit
from deepwell.fits.fitted import FittedModel

GRID = np.linspace(-1.5, 1.5, 9)[:, None]
QUANTILES = (0.05, 0.25, 0.75, 0.95)
ROWS, NOISE = 8, 0.15
TIGHT: dict[str, Any] = {"depth": 2, "width": 1, "num_inducing": ROWS, "hidden_variance": 0.1, "fixed": ["*"]}
"""With as many inducing points as rows Z_1 = X: the hidden layer has no variance left, so the bound is exact."""
BUDGETS: dict[str, dict[str, Any]] = {
    "nuts": {"num_chains": 8, "burn_in": 500, "num_samples": 500},
    "sghmc": {"num_chains": 32, "burn_in": 3000, "num_samples": 30, "spacing": 100, "step_size": 0.05},
}
TOLERANCE = 0.2
"""Monte Carlo error explains a disagreement up to this."""
TWIN = 2.0
"""The twin of SGHMC assumes this many times the noise variance."""


class Agreement(NamedTuple):
    """Draws of the function at the grid by both samplers and by a twin of SGHMC, (sample, grid point)."""

    sghmc: np.ndarray
    twin: np.ndarray
    nuts: np.ndarray

    @property
    def gap(self) -> float:
        return disagreement(self.sghmc, self.nuts)

    @property
    def twin_gap(self) -> float:
        return disagreement(self.twin, self.nuts)


def wave(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """A noisy sine."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-1.5, 1.5, (rows, 1)), 0)
    return X, np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(rows)


def function_values(model: FittedModel) -> np.ndarray:
    """Draws of f(x) at the grid, (sample, grid point), in model units, with the last layer's variance."""
    prediction: Any = model.predict_dist(GRID)
    noise = np.random.default_rng(1).standard_normal(prediction.means.shape)
    return (prediction.means + np.sqrt(prediction.function_variances) * noise)[..., 0]


def disagreement(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of means, standard deviations and (halved) quantiles, in standard deviations of b."""
    std = np.std(b, 0)
    means, quantiles = np.mean(a, 0) - np.mean(b, 0), np.quantile(a, QUANTILES, 0) - np.quantile(b, QUANTILES, 0)
    return float(np.max(np.abs(np.vstack([means / std, np.std(a, 0) / std - 1, quantiles / std / 2]))))


def can_be_tested() -> bool:
    """NUTS needs blackjax, an optional package."""
    return is_installed("blackjax")


def compare_samplers(seed: int = 0) -> Agreement:
    """Both samplers at depth 2 where the bound is exact, theta fixed."""
    X, y = wave(ROWS)

    def draws(name: str, noise: float) -> np.ndarray:
        model = fit(X, y, inference=name, seed=seed, noise_variance=noise, **TIGHT, **BUDGETS[name])
        return function_values(model)

    return Agreement(draws("sghmc", NOISE), draws("sghmc", TWIN * NOISE), draws("nuts", NOISE))
