"""To ArviZ, for its diagnostics, comparisons and plots: both its version 0 and its version 1."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwell.errors import is_installed, require
from deepwell.predict.diagnostics import Effective

if TYPE_CHECKING:
    from deepwell.fits.fitted import FittedModel

LEAST_DRAWS = 4


def to_arviz(model: "FittedModel", X: Any, y: Any = None) -> Any:
    """Function values at the rows of X, sampled hyperparameters, and the log-likelihood of y, by chain and draw.

    An ``InferenceData`` of ArviZ 0, a ``DataTree`` of ArviZ 1. With y ``arviz.loo`` works on it.
    """
    chains, draws = model.posterior.draws
    values = model.function_values(X)
    posterior = {"f": values.reshape(chains, draws, *values.shape[1:])}
    posterior |= {name: trace.reshape(chains, draws, *trace.shape[1:]) for name, trace in model.sampled_theta().items()}
    groups: dict[str, dict[str, np.ndarray]] = {"posterior": posterior}
    if y is not None:
        per_row = model.log_likelihoods(X, y)
        groups["log_likelihood"] = {"y": per_row.reshape(chains, draws, -1)}
    return _from_groups(groups, {"f": ["row", "output"]})


def leave_one_out(model: "FittedModel", X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """log p(y_i | the other rows) of every row of the fit, and the Pareto shape k of its estimate.

    By Pareto smoothed importance sampling (Vehtari et al. 2017) over the samples; hyperparameters that the samples
    share have seen row i and stay as they are. How much is smoothed depends on what the samples are worth: their
    effective number for the mean of p(y_i | sample), averaged over rows, which like ArviZ's own is one for all rows.
    """
    az = _arviz()
    chains, draws = model.posterior.draws
    given_samples = model.log_likelihoods(X, y).reshape(chains, draws, -1).astype(np.float64)
    placeholder = {"n": np.zeros((chains, draws))}  # ArviZ reads the chains' sizes here
    data = _from_groups({"posterior": placeholder, "log_likelihood": {"y": given_samples}}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the shapes are returned, and judged by the caller
        found = az.loo(data, pointwise=True, reff=_relative_efficiency(given_samples))
    per_row = found.loo_i if int(az.__version__.split(".")[0]) == 0 else found.elpd_i
    return np.asarray(per_row), np.asarray(found.pareto_k)


def _relative_efficiency(log_likelihoods: np.ndarray) -> float:
    """Effective over actual number of samples, for the mean over (chain, draw) of the likelihoods; mean over rows."""
    finite = log_likelihoods[:, :, np.all(np.isfinite(log_likelihoods), (0, 1))]
    if not finite.size:
        return 1.0
    likelihoods = np.exp(finite - np.max(finite, (0, 1)))
    data = _from_groups({"posterior": {"p": likelihoods}}, {"p": ["row"]})
    sizes = np.asarray(_arviz().ess(data, method="mean")["p"])
    return float(np.mean(sizes)) / (likelihoods.shape[0] * likelihoods.shape[1])


def effective_sizes(values: np.ndarray) -> Effective | None:
    """Of values (chain, draw, place), by ArviZ; None without ArviZ, or where there are too few draws for it."""
    if values.shape[1] < LEAST_DRAWS or not is_installed("arviz"):
        return None
    az = _arviz()
    data = _from_groups({"posterior": {"f": values.astype(np.float64)}}, {"f": ["place"]})
    bulk, tail = (np.asarray(az.ess(data, method=method)["f"]) for method in ("bulk", "tail"))
    error = np.asarray(az.mcse(data, method="mean")["f"]) / np.maximum(np.std(values, (0, 1)), 1e-300)
    return Effective(bulk, tail, error)


def _from_groups(groups: dict[str, dict[str, np.ndarray]], dims: dict[str, list[str]]) -> Any:
    az = _arviz()
    if int(az.__version__.split(".")[0]) == 0:
        return az.from_dict(**groups, dims=dims)
    return az.from_dict(groups, dims=dims)


def require_arviz() -> None:
    """Before a long fit whose result needs it."""
    _arviz()


def _arviz() -> Any:
    require("arviz", "this")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # version 0 announces version 1
        import arviz
    return arviz
