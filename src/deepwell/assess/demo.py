"""``deepwell demo``: a table that ships with scikit-learn, and a step that no stationary GP can follow."""

from pathlib import Path
from typing import Any

import numpy as np

from deepwell.assess.baselines import ridge
from deepwell.assess.report import HeldOut, write_report
from deepwell.data.splits import split_rows
from deepwell.doors import plots
from deepwell.errors import InputError
from deepwell.fits.fit import fit

DIABETES: dict[str, Any] = {"depth": 2, "burn_in": 6_000, "num_samples": 200, "spacing": 50}
STEP: dict[str, Any] = {"depth": 2, "num_inducing": 20, "burn_in": 3_000, "num_samples": 100, "spacing": 20}


def run_demo(folder: Path, verbose: bool = True) -> dict[str, dict[str, float]]:
    """Write ``deepwell.png``, ``report.html`` and the model to ``folder``; return the scores of each model."""
    from sklearn.datasets import load_diabetes

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
    table = load_diabetes(as_frame=True, scaled=False)
    train, test = split_rows(len(table.data), split=0)
    X, progression = table.data, table.target.rename("disease progression")
    y = progression.to_numpy()
    model = fit(X.iloc[train], progression.iloc[train], verbose=verbose, **DIABETES)
    prediction = model.predict_dist(X.iloc[test])
    table_scores = {
        "deep GP, depth 2": prediction.scores(y[test]),
        "ridge regression": ridge(X.to_numpy()[train], y[train])(X.to_numpy()[test]).scores(y[test]),
    }

    x, noisy = step_data()
    by_depth = {depth: fit(x[:, None], noisy, verbose=verbose, **{**STEP, "depth": depth}) for depth in (1, 2)}
    _draw(folder / "deepwell.png", x, noisy, by_depth, prediction, y[test])
    model.save(folder / "diabetes.deepwell")
    held_out = HeldOut(X.iloc[test], y[test], (X.to_numpy()[train], y[train]))
    write_report(model, folder / "report.html", held_out, "diabetes.deepwell")
    return table_scores


def step_data(seed: int = 0, rows: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """A noisy step: flat, then a jump, then flat."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1.0, 1.0, rows))
    return x, np.where(x < 0.0, -1.0, 1.0) + 0.05 * rng.standard_normal(rows)


def _draw(path: Path, x: np.ndarray, noisy: np.ndarray, by_depth: dict[int, Any], prediction: Any, y: Any) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    panels = figure.subplots(2, 2)
    grid = np.linspace(-1.3, 1.3, 300)
    for axes, (depth, model) in zip(panels[0], by_depth.items(), strict=True):
        plots.curve(axes, grid, model.predict_dist(grid[:, None]), draws=20)
        axes.plot(x, noisy, ".", color=plots.ORANGE, markersize=4, label="data")
        axes.set_title("depth 1: one stationary GP" if depth == 1 else f"depth {depth}: a deep GP, sampled")
        axes.set_ylim(-2.2, 2.2)
        axes.set_xlabel("x")
        axes.set_ylabel("y")
    panels[0, 0].legend(frameon=False, fontsize="small", loc="upper left")
    plots.predicted_against_observed(panels[1, 0], prediction, y, "disease progression")
    panels[1, 0].set_title("diabetes, rows not seen in the fit")
    plots.coverage(panels[1, 1], prediction, y)
    panels[1, 1].set_title("are the error bars honest?")
    figure.savefig(path, dpi=130)
