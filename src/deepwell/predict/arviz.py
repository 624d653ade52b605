"""Samples in the form of ArviZ, for its diagnostics, comparisons and plots. Works with its versions 0 and 1."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepwell.errors import is_installed, require
from deepwell.predict.diagnostics import EffectiveSizes

MIN_DRAWS = 4


def to_arviz(values: np.ndarray, traces: Mapping[str, np.ndarray], log_likelihoods: np.ndarray | None = None) -> Any:
    """Function values (chain, draw, row, output), sampled hyperparameters by name (chain, draw, ...), and
    log-likelihoods (chain, draw, row), with which ``arviz.loo`` works.

    An ``InferenceData`` of ArviZ 0, a ``DataTree`` of ArviZ 1.
    """
    groups: dict[str, Mapping[str, np.ndarray]] = {"posterior": {"f": values, **traces}}
    if log_likelihoods is not None:
        groups["log_likelihood"] = {"y": log_likelihoods}
    return _from_groups(groups, {"f": ["row", "output"]})


def leave_one_out(log_likelihoods: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log p(y_i | the other rows) of every row of the fit, and the Pareto shape k of its estimate.

    ``log_likelihoods`` are log p(y_i | x_i) under each sample, (chain, draw, row).

    By Pareto smoothed importance sampling (Vehtari et al. 2017). Hyperparameters that the samples share have seen row i
    and stay as they are. The amount of smoothing depends on the effective number of samples for the mean of
    p(y_i | sample), averaged over rows; like ArviZ's own, it is one number for all rows.
    """
    az = _arviz()
    scores = log_likelihoods.astype(np.float64)
    placeholder = {"n": np.zeros(scores.shape[:2])}  # ArviZ reads the chains' sizes here
    data = _from_groups({"posterior": placeholder, "log_likelihood": {"y": scores}}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the shapes are returned, and judged by the caller
        estimate = az.loo(data, pointwise=True, reff=_relative_efficiency(scores))
    per_row = estimate.loo_i if int(az.__version__.split(".")[0]) == 0 else estimate.elpd_i
    return np.asarray(per_row), np.asarray(estimate.pareto_k)


def _relative_efficiency(log_likelihoods: np.ndarray) -> float:
    """Effective over actual number of samples, for the mean of each row's likelihood over samples; mean over rows."""
    finite = log_likelihoods[:, :, np.all(np.isfinite(log_likelihoods), (0, 1))]
    if not finite.size:
        return 1.0
    likelihoods = np.exp(finite - np.max(finite, (0, 1)))
    data = _from_groups({"posterior": {"p": likelihoods}}, {"p": ["row"]})
    sizes = np.asarray(_arviz().ess(data, method="mean")["p"])
    return float(np.mean(sizes)) / (likelihoods.shape[0] * likelihoods.shape[1])


def effective_sizes(values: np.ndarray) -> EffectiveSizes | None:
    """Of values (chain, draw, place); None without ArviZ, or with too few draws for it."""
    if values.shape[1] < MIN_DRAWS or not is_installed("arviz"):
        return None
    az = _arviz()
    data = _from_groups({"posterior": {"f": values.astype(np.float64)}}, {"f": ["place"]})
    bulk, tail = (np.asarray(az.ess(data, method=method)["f"]) for method in ("bulk", "tail"))
    error = np.asarray(az.mcse(data, method="mean")["f"]) / np.maximum(np.std(values, (0, 1)), 1e-300)
    return EffectiveSizes(bulk, tail, error)


def _from_groups(groups: Mapping[str, Mapping[str, np.ndarray]], dims: dict[str, list[str]]) -> Any:
    az = _arviz()
    if int(az.__version__.split(".")[0]) == 0:
        return az.from_dict(**groups, dims=dims)
    return az.from_dict(groups, dims=dims)


def require_arviz() -> None:
    """Raise an error before a long fit whose result needs ArviZ."""
    _arviz()


def _arviz() -> Any:
    require("arviz", "this")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # version 0 announces version 1
        import arviz
    return arviz
