"""``deepwell report``: everything known of a fitted model on one page."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from deepwell.data.tables import align_columns, is_frame, to_matrix
from deepwell.inference.posteriors import Networks, OwnTheta, Variational
from deepwell.interfaces import plots
from deepwell.interfaces.baselines import baseline_scores
from deepwell.interfaces.containers import write_atomically
from deepwell.interfaces.fitted import FittedModel
from deepwell.interfaces.page import code, page, paragraph, picture, table
from deepwell.predict.calibration import Calibration, Reliability
from deepwell.predict.classes import ClassProbabilities
from deepwell.predict.metrics import scores
from deepwell.predict.relevance import Relevance

MOST_ROWS = 1_000
MOST_COLUMNS = 40
SLICES = 4
PROBES = 200


class Held(NamedTuple):
    """Rows kept out of the fit, and the rows of the fit if baselines are wanted."""

    X: Any
    y: np.ndarray
    training: tuple[np.ndarray, np.ndarray] | None = None


def write_report(model: FittedModel, path: str | Path, held: Held | None = None, name: str = "model") -> None:
    """Write the page; without held-out rows it holds what the model alone can tell."""
    target = ", ".join(model.target_names)
    write_atomically(Path(path), page(f"{target}: a deepwell report", sections(model, held, name)).encode())


def sections(model: FittedModel, held: Held | None, name: str) -> list[tuple[str, str]]:
    """Headings and their HTML."""
    X = _probes(model) if held is None else _matrix(model, held.X)[:MOST_ROWS]
    found = [("Data", _data(model, held))]
    if held is not None:
        found.append(("Scores on rows not seen in the fit", _scores(model, held)))
        found.append(("Can the error bars be trusted?", _calibration(model, held)))
    found.append(("Did it converge?", _convergence(model, X)))
    relevance = model.relevance(X)
    found.append(("What matters", _relevance(model, relevance)))
    if model.classes is None:
        found.append(("Along one input", _slices(model, X, relevance)))
    hidden = _hidden(model, X, relevance)
    if hidden:
        found.append(("Hidden layers", hidden))
    found.append(("Settings and versions", _settings(model)))
    found.append(("Load it and predict", _usage(name)))
    return found


def _matrix(model: FittedModel, X: Any) -> np.ndarray:
    if model.named and is_frame(X):
        X = align_columns(X, model.feature_names)
    return to_matrix(X, "X")[0]


def _probes(model: FittedModel) -> np.ndarray:
    """Inputs to look at when no table is given: the first layer's inducing inputs, or random ones for a net."""
    posterior: Any = model.posterior
    if isinstance(posterior, Networks):
        inputs = np.random.default_rng(0).standard_normal((PROBES, len(model.feature_names)))
    else:
        deep_gp = posterior.template if isinstance(posterior, OwnTheta) else posterior.model
        inputs = np.asarray(deep_gp.layers[0].inducing_inputs)
    return model.x_scaling.restore(inputs)


def _data(model: FittedModel, held: Held | None) -> str:
    kind = "a class" if model.classes is not None else f"{model.settings.likelihood} noise"
    rows = f"{model.num_rows:,} rows in the fit" + (f", {len(held.y):,} kept out" if held is not None else "")
    said = f"{rows}; {len(model.feature_names)} inputs; target {', '.join(model.target_names)} ({kind})."
    columns = zip(model.feature_names, model.x_scaling.offset, model.x_scaling.scale, strict=True)
    rows_of = {name: {"mean": float(offset), "standard deviation": float(scale)} for name, offset, scale in columns}
    shown = dict(list(rows_of.items())[:MOST_COLUMNS])
    more = f"and {len(rows_of) - len(shown)} more inputs" if len(rows_of) > len(shown) else ""
    return paragraph(said) + table(shown, "input") + (paragraph(more) if more else "")


def _scores(model: FittedModel, held: Held) -> str:
    rows = {f"deep GP, depth {model.settings.depth}": scores(model.predict_dist(held.X), held.y)}
    if held.training is not None and len(model.target_names) == 1:
        X, y = held.training
        rows |= baseline_scores(X, y, _matrix(model, held.X), held.y, str(model.settings.likelihood), model.seed)
    explained = (
        "Log-likelihood and accuracy (share of right answers): higher is better. Brier score and calibration error: "
        "lower is better."
        if model.classes is not None
        else "Log-likelihood: higher is better. RMSE and CRPS: lower is better, in the units of the target. "
        "Coverage: share of rows inside their 95 % interval."
    )
    return table(rows, "model") + paragraph(explained) + _answers(model, held)


def _answers(model: FittedModel, held: Held) -> str:
    """Predictions against what was observed."""
    X, y = held.X[:MOST_ROWS], held.y[:MOST_ROWS]
    found = model.predict_dist(X)
    if isinstance(found, ClassProbabilities):
        return table(_confusion(found, y), "observed \\ predicted")
    figure, (axes,) = _figure(1, height=4.5)
    if model.single_target or len(model.target_names) == 1:
        plots.predicted_against_observed(axes, found, y, model.target_names[0])
    else:
        for i, name in enumerate(model.target_names):
            axes.plot(y[:, i], found.mean[:, i], ".", label=name)
        axes.set_xlabel("observed")
        axes.set_ylabel("predicted")
        axes.legend(frameon=False)
    return picture(figure, "answers", "predicted against observed values")


def _confusion(found: ClassProbabilities, y: np.ndarray) -> dict[str, dict[str, Any]]:
    labels = found.classes.tolist()
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (found.codes(y), np.argmax(found.probabilities, -1)), 1)
    return {str(a): {str(b): int(counts[i, j]) for j, b in enumerate(labels)} for i, a in enumerate(labels)}


def _calibration(model: FittedModel, held: Held) -> str:
    found = model.calibration(held.X, held.y)
    figure, axes = _figure(1 if isinstance(found, Reliability) else 2)
    if isinstance(found, Calibration):
        plots.pit_histogram(axes[0], found)
        plots.coverage_curve(axes[1], found)
        said = f"{found}. Mean width of the 90 % intervals: {found.sharpness:.4g}."
    else:
        plots.reliability(axes[0], found)
        said = "Dots on the diagonal: probabilities mean what they say. Above it: too modest. Below it: too sure."
    return paragraph(said, verdict=True) + picture(figure, "calibration", "calibration on held-out rows")


def _convergence(model: FittedModel, X: np.ndarray) -> str:
    chained = not isinstance(model.posterior, Variational)
    figure, axes = _figure(2 if chained else 1)
    plots.trace(axes[0], model.trace)
    said = f"{model.settings.inference} has no chains: look whether the curve is flat."
    if chained:
        said = str(model.diagnose(X))
        values = model.function_values(X)[:, :, 0].reshape(*model.posterior.draws, -1)
        place = int(np.argmax(np.std(np.mean(values, 1), 0) + np.std(values, (0, 1))))
        plots.chains(axes[1], values[..., place])
    troubles = model.troubles()
    drawn = picture(figure, "convergence", "course of the fit, and one function value over the draws")
    return paragraph(said, verdict=True) + (paragraph(f"Troubles: {troubles}.") if troubles else "") + drawn


def _relevance(model: FittedModel, found: Relevance) -> str:
    figure, (axes,) = _figure(1, height=1.2 + 0.28 * min(len(found.mean), plots.MOST_BARS))
    plots.relevance(axes, found, model.feature_names)
    said = (
        "Root mean square of the prediction's slope in each input, through all layers; bars: two posterior deviations."
    )
    return paragraph(said) + picture(figure, "relevance", "relevance of the inputs")


def _slices(model: FittedModel, X: np.ndarray, found: Relevance) -> str:
    """The prediction along the most relevant inputs, the others at their medians; of several targets the first."""
    chosen = np.argsort(found.mean)[::-1][: min(SLICES, X.shape[1])]
    figure, panels = _figure(len(chosen), height=3.2 * ((len(chosen) + 1) // 2))
    middle = np.median(X, axis=0)
    for axes, column in zip(panels, chosen, strict=True):
        first, last = np.quantile(X[:, column], [0.01, 0.99])
        x = np.linspace(first, last, 100)
        rows = np.tile(middle, (len(x), 1))
        rows[:, column] = x
        _band(axes, x, model.predict_dist(rows))
        axes.set_xlabel(model.feature_names[column])
        axes.set_ylabel(model.target_names[0])
    said = "Mean, 50 % and 95 % bands along one input, the others at their medians."
    return paragraph(said) + picture(figure, "slices", "predictions along single inputs")


def _band(axes: Any, x: np.ndarray, prediction: Any) -> None:
    if prediction.mean.ndim == 1:
        plots.curve(axes, x, prediction)
    else:
        axes.plot(x, prediction.mean[:, 0], color=plots.BLUE)


def _hidden(model: FittedModel, X: np.ndarray, found: Relevance) -> str:
    layers = model.hidden_layers(X)
    if not layers:
        return ""
    column = int(np.argmax(found.mean))
    figure, panels = _figure(len(layers), height=3.2 * ((len(layers) + 1) // 2))
    for number, (axes, outputs) in enumerate(zip(panels, layers, strict=True), start=1):
        unit = int(np.argmax(np.std(outputs.mean(0), axis=0)))
        plots.hidden_layer(axes, X[:, column], outputs, model.feature_names[column], unit)
        axes.set_title(f"layer {number}", fontsize="medium")
    said = "The liveliest output of each hidden layer against the most relevant input, posterior samples overlaid."
    return paragraph(said) + picture(figure, "hidden", "outputs of the hidden layers")


def _settings(model: FittedModel) -> str:
    from deepwell import __version__

    chosen = {name: {"value": str(value)} for name, value in dataclasses.asdict(model.settings).items()}
    made = {"preset": model.preset, "seed": model.seed, "seconds": f"{model.seconds:.1f}"}
    made |= {"deepwell": __version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    return table({name: {"value": value} for name, value in made.items()}) + table(chosen, "setting")


def _usage(name: str) -> str:
    return code(
        f"import deepwell\n\nmodel = deepwell.load({name!r})\n"
        "prediction = model.predict_dist(new_table)  # a DataFrame with the columns above\n"
    ) + code(f"deepwell predict {name} new_table.csv --out predictions.csv")


def _figure(count: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    """Axes side by side, two in a row."""
    from matplotlib.figure import Figure

    rows, columns = (count + 1) // 2, min(count, 2)
    figure = Figure(figsize=(9.0, height), layout="constrained")
    panels = list(np.ravel(figure.subplots(rows, columns)))
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]
