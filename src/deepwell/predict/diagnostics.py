"""Do the chains agree? Judged on function values: inducing outputs are not identifiable across chains."""

from typing import NamedTuple

import numpy as np

AGREE = 1.05


class Diagnosis(NamedTuple):
    """Split R-hat of the function's values, one a row (and target) looked at, and a verdict in words."""

    r_hat: np.ndarray
    num_chains: int
    num_draws: int

    @property
    def converged(self) -> bool:
        return bool(np.mean(self.r_hat <= AGREE) >= 0.95)

    def __str__(self) -> str:
        if self.num_draws < 4:
            return f"{self.num_draws} draws of each chain are too few to tell whether the chains agree: keep 4 or more."
        share = np.mean(self.r_hat <= AGREE)
        summary = (
            f"{self.num_chains} chain(s) of {self.num_draws} draws: split R-hat is at most {AGREE} at "
            f"{share:.0%} of the places looked at (median {np.median(self.r_hat):.3f}, worst {np.max(self.r_hat):.3f})"
        )
        advice = "the chains agree" if self.converged else "the chains have not mixed: run longer, or use more chains"
        alone = "; one chain cannot show that another would agree" if self.num_chains == 1 else ""
        return f"{summary}; {advice}{alone}."


def diagnose(values: np.ndarray) -> Diagnosis:
    """Diagnose values of shape (chain, draw, place)."""
    return Diagnosis(split_r_hat(values), values.shape[0], values.shape[1])


def split_r_hat(values: np.ndarray) -> np.ndarray:
    """sqrt(((n-1)/n W + B/n) / W) over half-chains (Gelman et al., Bayesian Data Analysis, 3rd ed., 11.4)."""
    chains, draws, places = values.shape
    n = draws // 2
    if n < 2:
        return np.full(places, np.nan)
    halves = values[:, : 2 * n].astype(np.float64).reshape(chains * 2, n, places)
    within = np.mean(np.var(halves, axis=1, ddof=1), axis=0)
    between = n * np.var(np.mean(halves, axis=1), axis=0, ddof=1)
    ratio = ((n - 1) / n * within + between / n) / np.where(within > 0.0, within, 1.0)
    return np.where(within > 0.0, np.sqrt(ratio), np.where(between > 0.0, np.inf, 1.0))
