"""``deepwell report``: everything known of a fitted model on one page."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from deepwell.assess.baselines import baseline_scores
from deepwell.assess.page import code, page, panels, paragraph, picture, table
from deepwell.doors import plots
from deepwell.fits.fitted import FittedModel
from deepwell.inference.posterior import Networks, OwnTheta, Variational
from deepwell.predict.calibration import Calibration
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.relevance import Relevance
from deepwell.predict.scores import scores
from deepwell.store.tensor_file import write_atomically

MOST_ROWS = 1_000
MOST_DOTS = 200
"""Rows in the pictures of the hidden layers, which show twenty draws of each."""
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
    X = _probes(model) if held is None else model.input_matrix(held.X)[:MOST_ROWS]
    found = [("Data", _data(model, held))]
    if held is not None:
        found.append(("Scores on rows not seen in the fit", _scores(model, held)))
        found.append(("Can the error bars be trusted?", _calibration(model, held)))
    found.append(("Did it converge?", _convergence(model, X)))
    relevance = model.relevance(X)
    found.append(("What matters", _relevance(model, relevance)))
    found.append(("Along one input", _slices(model, X, relevance)))
    hidden = _hidden(model, X, relevance)
    if hidden:
        found.append(("Hidden layers", hidden))
    found.append(("Settings and versions", _settings(model)))
    found.append(("Load it and predict", _usage(name)))
    return found


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
        rows |= baseline_scores(X, y, model.input_matrix(held.X), held.y, str(model.settings.likelihood), model.seed)
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
    figure, axes = _figure(height=3.8)
    if model.single_target or len(model.target_names) == 1:
        plots.predicted_against_observed(axes, found, y, model.target_names[0])
    else:
        for i, name in enumerate(model.target_names):
            axes.plot(y[:, i], found.mean[:, i], ".", label=name)
        axes.set_xlabel("observed")
        axes.set_ylabel("predicted")
        axes.legend(frameon=False)
    return panels(picture(figure, "answers", "predicted against observed values"))


def _confusion(found: ClassProbabilities, y: np.ndarray) -> dict[str, dict[str, Any]]:
    labels = found.classes.tolist()
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (found.codes(y), np.argmax(found.probabilities, -1)), 1)
    return {str(a): {str(b): int(counts[i, j]) for j, b in enumerate(labels)} for i, a in enumerate(labels)}


def _calibration(model: FittedModel, held: Held) -> str:
    found = model.calibration(held.X, held.y)
    if isinstance(found, Calibration):
        drawn = [
            _drawn("pit", "where observations fell in their predictions", plots.pit_histogram, found),
            _drawn("coverage", "coverage of intervals", plots.coverage_curve, found),
        ]
        said = f"{found}. Mean width of the 90 % intervals: {found.sharpness:.4g}."
    else:
        drawn = [_drawn("reliability", "share of right answers against confidence", plots.reliability, found)]
        said = "Dots on the diagonal: probabilities mean what they say. Above it: too modest. Below it: too sure."
    return paragraph(said, verdict=True) + panels(*drawn)


def _convergence(model: FittedModel, X: np.ndarray) -> str:
    drawn = [_drawn("trace", "log-likelihood over the iterations of the fit", plots.trace, model.trace)]
    said = f"{model.settings.inference} has no chains: look whether the curve is flat."
    if not isinstance(model.posterior, Variational):
        said = str(model.diagnose(X))
        values = model.function_values(X)[:, :, 0].reshape(*model.posterior.draws, -1)
        place = int(np.argmax(np.std(np.mean(values, 1), 0) + np.std(values, (0, 1))))
        drawn.append(_drawn("chains", "one function value over the draws", plots.chains, values[..., place]))
    troubles = model.troubles()
    return paragraph(said, verdict=True) + (paragraph(f"Troubles: {troubles}.") if troubles else "") + panels(*drawn)


def _relevance(model: FittedModel, found: Relevance) -> str:
    figure, axes = _figure(height=1.2 + 0.28 * min(len(found.mean), plots.MOST_BARS))
    plots.relevance(axes, found, model.feature_names)
    said = (
        "Root mean square of the prediction's slope in each input, through all layers; bars: two posterior deviations."
    )
    return paragraph(said) + panels(picture(figure, "relevance", "relevance of the inputs"))


def _slices(model: FittedModel, X: np.ndarray, found: Relevance) -> str:
    """Along the most relevant inputs; of several targets the first."""
    drawn = []
    for i, column in enumerate(np.argsort(found.mean)[::-1][:SLICES]):
        along = model.slice_along(X, int(column))
        drawn.append(_drawn(f"slice{i}", f"prediction along {along.name}", plots.slice_bands, along))
    shown = "Probabilities" if model.classes is not None else "Mean, 50 % and 95 % bands"
    return paragraph(f"{shown} along one input, the others at their medians.") + panels(*drawn)


def _hidden(model: FittedModel, X: np.ndarray, found: Relevance) -> str:
    X = X[:MOST_DOTS]
    layers = model.hidden_layers(X)
    if not layers:
        return ""
    column = int(np.argmax(found.mean))
    name, drawn = model.feature_names[column], []
    for number, outputs in enumerate(layers, start=1):
        unit = int(np.argmax(np.std(outputs.mean(0), axis=0)))
        label = f"layer {number}, output {unit + 1}"
        drawn.append(_drawn(f"hidden{number}", label, plots.hidden_layer, X[:, column], outputs, name, unit, number))
    said = "The liveliest output of each hidden layer against the most relevant input, posterior samples overlaid."
    return paragraph(said) + panels(*drawn)


def _settings(model: FittedModel) -> str:
    from deepwell import __version__

    known = {"deepwell": __version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    known |= {"seconds": f"{model.seconds:.1f}", "seed": model.seed, "preset": model.preset}
    known |= {name.replace("_", " "): value for name, value in dataclasses.asdict(model.settings).items()}
    rows = [(name, {"value": str(value)}) for name, value in known.items()]
    half = (len(rows) + 1) // 2
    return panels(table(dict(rows[:half])), table(dict(rows[half:])))


def _usage(name: str) -> str:
    return code(
        f"import deepwell\n\nmodel = deepwell.load({name!r})\n"
        "prediction = model.predict_dist(new_table)  # a DataFrame with the columns above\n"
    ) + code(f"deepwell predict {name} new_table.csv --out predictions.csv")


def _drawn(name: str, description: str, draw: Callable[..., None], *results: Any) -> str:
    """One panel: ``draw(axes, *results)``."""
    figure, axes = _figure()
    draw(axes, *results)
    return picture(figure, name, description)


def _figure(width: float = 4.6, height: float = 3.2) -> tuple[Any, Any]:
    """A figure of one panel, so that a narrow screen can show panels one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()
