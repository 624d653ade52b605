"""Agreement of chains, judged on function values, because inducing outputs are not identifiable across chains."""

from typing import NamedTuple

import numpy as np

AGREE = 1.05
APART, APART_SHARE = 3.0, 0.1
"""Two chains are in different modes if their means differ by more than so many of their standard deviations at more
than this share of the places."""
ENOUGH = 100
"""Effective draws that give a mean to a tenth of a standard deviation."""


class EffectiveSizes(NamedTuple):
    """At each place: effective sample sizes of the bulk and the tails, and the Monte Carlo error of the mean in
    posterior standard deviations (Vehtari et al. 2021)."""

    bulk: np.ndarray
    tail: np.ndarray
    error: np.ndarray


class Diagnosis(NamedTuple):
    """Split R-hat of the function values, one for each place (row and output); chains grouped into modes; a verdict."""

    r_hat: np.ndarray
    num_chains: int
    num_draws: int
    modes: tuple[tuple[int, ...], ...] = ()
    effective: EffectiveSizes | None = None
    """None if ArviZ is not installed or the draws are too few."""

    @property
    def converged(self) -> bool:
        return bool(np.mean(self.r_hat <= AGREE) >= 0.95)

    def __str__(self) -> str:
        if self.num_draws < 4:
            return f"{self.num_draws} draws of each chain are too few to compare the chains: keep at least 4."
        share = np.mean(self.r_hat <= AGREE)
        summary = (
            f"{self.num_chains} chain(s) of {self.num_draws} draws: split R-hat is at most {AGREE} at "
            f"{share:.0%} of the function values (median {np.median(self.r_hat):.3f}, worst {np.max(self.r_hat):.3f})"
        )
        return "; ".join([summary, *self._effective_size(), *self._advice()]) + "."

    def _effective_size(self) -> list[str]:
        if self.effective is None:
            return []
        bulk, tail = np.median(self.effective.bulk), np.median(self.effective.tail)
        return [
            f"the effective sample size is {bulk:.0f} for the mean and {tail:.0f} for the tails (medians), "
            f"so means are known to within {np.median(self.effective.error):.2f} posterior standard deviations"
        ]

    def _advice(self) -> list[str]:
        if len(self.modes) > 1:
            return [
                _name_modes(self.modes, self.num_chains),
                "predictions weight each mode by its number of chains",
            ]
        if not self.converged:
            return ["the chains have not mixed: run longer, or use more chains"]
        if self.num_chains == 1:
            return ["the chain agrees with itself, but one chain cannot show whether another would agree"]
        few = self.effective is not None and np.median(self.effective.bulk) < ENOUGH
        return ["the chains agree", *(["more samples would make the means more precise"] if few else [])]


def _name_modes(modes: tuple[tuple[int, ...], ...], num_chains: int) -> str:
    """Chains are numbered from 1."""

    def named(chains: tuple[int, ...]) -> str:
        return ("chain " if len(chains) == 1 else "chains ") + ", ".join(str(i + 1) for i in chains)

    largest, *others = sorted(modes, key=len, reverse=True)
    if len(largest) > num_chains / 2:
        away = " and ".join(f"{named(m)} {'is' if len(m) == 1 else 'are'} in another mode" for m in others)
        return f"{len(largest)} of {num_chains} chains agree; {away}; run longer, and do not rely on either alone"
    return f"the chains are in {len(modes)} modes: " + "; ".join(named(mode) for mode in modes)


def diagnose(values: np.ndarray, effective: EffectiveSizes | None = None) -> Diagnosis:
    """Diagnose values of shape (chain, draw, place)."""
    return Diagnosis(split_r_hat(values), values.shape[0], values.shape[1], find_modes(values), effective)


def find_modes(values: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Groups of chains: two are in one mode unless their means are many standard deviations apart in many places."""
    if values.shape[1] < 2:
        return (tuple(range(len(values))),)
    means, stds = np.mean(values, 1), np.std(values, 1, ddof=1)
    groups: list[list[int]] = []
    for chain in range(len(values)):
        for group in groups:
            first = group[0]
            spread = np.sqrt(0.5 * (stds[chain] ** 2 + stds[first] ** 2))
            apart = np.abs(means[chain] - means[first]) > APART * spread
            if np.mean(apart) <= APART_SHARE:
                group.append(chain)
                break
        else:
            groups.append([chain])
    return tuple(tuple(group) for group in groups)


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
