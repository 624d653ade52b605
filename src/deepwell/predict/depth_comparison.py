"""Does depth help? Depths are compared by their log densities of the same rows."""

from typing import NamedTuple

import numpy as np

CLEARLY = 2.0
"""A depth counts as worse than the best if it is worse by more than so many standard errors."""
DOUBTFUL_K, DOUBTFUL_SHARE = 0.7, 0.1
"""Pareto shape above which a row's leave-one-out density is unreliable (Vehtari et al. 2017), and the share of such
rows above which the verdict says so."""


class DepthComparison(NamedTuple):
    """log p(y_i | rows of the fit) of the same rows i at several depths.

    With d_i = log p_depth(y_i) - log p_best(y_i) over n rows, ``difference`` is the mean of d_i and ``standard_error``
    sqrt(var(d_i) / n). Rows that are hard at every depth therefore add no error to the comparison.
    """

    depths: tuple[int, ...]
    log_densities: np.ndarray
    """(depths, rows), in the units of y."""
    by: str
    """``validation`` or ``loo``."""
    seconds: tuple[float, ...]
    """Of each fit."""
    pareto_k: np.ndarray | None = None
    """(depths, rows), if ``by`` is ``loo``."""

    @property
    def mean(self) -> np.ndarray:
        return np.mean(self.log_densities, 1)

    @property
    def best(self) -> int:
        return self.depths[int(np.argmax(self.mean))]

    @property
    def difference(self) -> np.ndarray:
        return np.mean(self._differences, 1)

    @property
    def standard_error(self) -> np.ndarray:
        return np.std(self._differences, 1, ddof=1) / np.sqrt(self.log_densities.shape[1])

    @property
    def enough(self) -> int:
        """The shallowest depth that is not clearly worse than the best."""
        close = self.difference >= -CLEARLY * self.standard_error
        return min(depth for depth, near in zip(self.depths, close, strict=True) if near)

    @property
    def _differences(self) -> np.ndarray:
        return self.log_densities - self.log_densities[self.depths.index(self.best)]

    def rows(self) -> dict[str, dict[str, float]]:
        """One row for each depth."""
        columns = zip(self.depths, self.mean, self.difference, self.standard_error, self.seconds, strict=True)
        names = ("log density", "difference to the best", "standard error", "seconds")
        return {f"depth {depth}": dict(zip(names, map(float, values), strict=True)) for depth, *values in columns}

    def __str__(self) -> str:
        return f"{self._verdict()} {self._doubts()}".strip()

    def _verdict(self) -> str:
        rows = f"{self.log_densities.shape[1]} rows {'kept out' if self.by == 'validation' else 'left out one by one'}"
        shallowest = min(self.depths)
        if len(self.depths) == 1:
            return f"Depth {self.best}: log density {self.mean[0]:.3f} on {rows}; nothing to compare with."
        if self.enough == self.best == shallowest:
            return f"Depth does not help here: depth {self.best} is the best on {rows}."
        if self.enough == shallowest:
            return (
                f"Depth does not help here: depth {self.enough} is as good, within two standard errors, as the best, "
                f"depth {self.best} ({self._gap(self.enough)} on {rows})."
            )
        helps = f"Depth helps: depth {shallowest} is worse than depth {self.best} by {self._gap(shallowest)} on {rows}."
        if self.enough == self.best:
            return helps
        return f"{helps} Depth {self.enough} is enough ({self._gap(self.enough)})."

    def _gap(self, depth: int) -> str:
        place = self.depths.index(depth)
        return f"{-self.difference[place]:.3f} ± {self.standard_error[place]:.3f} a row"

    def _doubts(self) -> str:
        if self.pareto_k is None or np.mean(self.pareto_k > DOUBTFUL_K) <= DOUBTFUL_SHARE:
            return ""
        share = np.mean(self.pareto_k > DOUBTFUL_K)
        return f"Leaving one out cannot be trusted at {share:.0%} of the rows (Pareto k above {DOUBTFUL_K}): validate."
