"""``deepwell report``: what is known about a fitted model, on one page."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from deepwell.assess.page import Picture, picture, render
from deepwell.doors import plots
from deepwell.errors import require
from deepwell.fits.fitted import FittedModel
from deepwell.predict.calibration import Calibration
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.relevance import Relevance
from deepwell.store.tensor_file import write_atomically

MOST_ROWS = 1_000
MOST_DOTS = 200
"""Rows in the pictures of the hidden layers, which show twenty draws of each."""
MOST_COLUMNS = 40
SLICES = 4
PROBES = 200

Rows = dict[str, dict[str, Any]]
"""A table: the cells of each row by column."""


class HeldOut(NamedTuple):
    """Rows that the fit has not seen, and the rows of the fit if simple models are to be compared."""

    X: Any
    y: np.ndarray
    training: tuple[np.ndarray, np.ndarray] | None = None


def __getattr__(name: str) -> Any:
    if name == "Held":
        warnings.warn("Held is now HeldOut; the old name goes with version 0.7", FutureWarning, stacklevel=2)
        return HeldOut
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Judgement(NamedTuple):
    """The model on held-out rows."""

    num_rows: int
    scores: Rows
    confusion: Rows
    """Counts of classes, observed and predicted; empty for numbers."""
    predictions: list[Picture]
    """Of numbers, against what was observed."""
    verdict: str
    calibration: list[Picture]


class Convergence(NamedTuple):
    """Whether the fit has converged."""

    verdict: str
    numerical_problems: str
    pictures: list[Picture]


def require_packages() -> None:
    """Refuse early, before a long fit, where a report could not be written."""
    for package in ("jinja2", "matplotlib", "sklearn"):
        require(package, "a report")


def write_report(model: FittedModel, path: str | Path, held_out: HeldOut | None = None, name: str = "model") -> None:
    """Write the page. ``name`` is the model's file; without held-out rows there are no scores and no calibration."""
    require_packages()
    write_atomically(Path(path), render("report.html.jinja", **contents(model, held_out, name)).encode())


def contents(model: FittedModel, held_out: HeldOut | None, file_name: str) -> dict[str, Any]:
    """What the template shows."""
    X = probe_rows(model) if held_out is None else model.input_matrix(held_out.X)[:MOST_ROWS]
    relevance = model.relevance(X)
    return {
        "title": f"{', '.join(model.target_names)}: a deepwell report",
        "model": model,
        "inputs": input_scales(model),
        "held_out": None if held_out is None else judge(model, held_out),
        "convergence": convergence(model, X),
        "relevance": relevance_picture(model, relevance),
        "slices": slices(model, X, relevance),
        "hidden_layers": hidden_layers(model, X[:MOST_DOTS], relevance),
        "settings": settings(model),
        "file_name": file_name,
    }


def probe_rows(model: FittedModel) -> np.ndarray:
    """Inputs to look at when no table is given: those that the posterior holds, or random ones."""
    held = model.posterior.probe_inputs()
    size = PROBES, len(model.feature_names)
    return model.x_scaling.restore(np.random.default_rng(0).standard_normal(size) if held is None else np.asarray(held))


def input_scales(model: FittedModel) -> Rows:
    """The scaling of the first inputs."""
    columns = list(zip(model.feature_names, model.x_scaling.offset, model.x_scaling.scale, strict=True))
    return {
        name: {"mean": float(offset), "standard deviation": float(scale)}
        for name, offset, scale in columns[:MOST_COLUMNS]
    }


def judge(model: FittedModel, held_out: HeldOut) -> Judgement:
    """Scores, predictions and calibration on held-out rows."""
    from deepwell.assess.baselines import baseline_scores

    prediction = model.predict_dist(held_out.X)
    table = {f"deep GP, depth {model.settings.depth}": prediction.scores(held_out.y)}
    if held_out.training is not None and len(model.target_names) == 1:
        inputs, likelihood = model.input_matrix(held_out.X), str(model.settings.likelihood)
        table |= baseline_scores(*held_out.training, inputs, held_out.y, likelihood, model.seed)
    is_class = isinstance(prediction, ClassProbabilities)
    return Judgement(
        len(held_out.y),
        table,
        confusion(prediction, held_out.y) if isinstance(prediction, ClassProbabilities) else {},
        [] if is_class else [predictions_picture(model, held_out)],
        *calibration(model, held_out),
    )


def confusion(prediction: ClassProbabilities, y: np.ndarray) -> Rows:
    """How often each class was predicted for each class."""
    labels = prediction.classes.tolist()
    counts = np.zeros((len(labels), len(labels)), int)
    np.add.at(counts, (prediction.codes(y), np.argmax(prediction.probabilities, -1)), 1)
    return {str(a): {str(b): int(counts[i, j]) for j, b in enumerate(labels)} for i, a in enumerate(labels)}


def predictions_picture(model: FittedModel, held_out: HeldOut) -> Picture:
    """Predictions against what was observed."""
    y = held_out.y[:MOST_ROWS]
    prediction: Any = model.predict_dist(held_out.X[:MOST_ROWS])
    figure, axes = new_figure(height=3.8)
    if len(model.target_names) == 1:
        plots.predicted_against_observed(axes, prediction, y, model.target_names[0])
    else:
        for i, name in enumerate(model.target_names):
            axes.plot(y[:, i], prediction.mean[:, i], ".", label=name)
        axes.set_xlabel("observed")
        axes.set_ylabel("predicted")
        axes.legend(frameon=False)
    return picture(figure, "answers", "predicted against observed values")


def calibration(model: FittedModel, held_out: HeldOut) -> tuple[str, list[Picture]]:
    """A verdict on the error bars, and the pictures behind it."""
    result = model.calibration(held_out.X, held_out.y)
    if not isinstance(result, Calibration):
        verdict = (
            "On the diagonal, probabilities are calibrated. Above it the model is underconfident, below it "
            "overconfident."
        )
        return verdict, [draw("reliability", "accuracy against confidence", plots.reliability, result)]
    return f"{result}. Mean width of the 90 % intervals: {result.sharpness:.4g}.", [
        draw("pit", "histogram of the probability integral transform", plots.pit_histogram, result),
        draw("coverage", "coverage of intervals against their level", plots.coverage_curve, result),
    ]


def convergence(model: FittedModel, X: np.ndarray) -> Convergence:
    """The trace of the fit; of samples, the agreement of the chains."""
    pictures = [draw("trace", "log-likelihood over the iterations of the fit", plots.trace, model.trace)]
    problems = model.numerical_issues()
    if not model.posterior.has_chains:
        verdict = f"{model.settings.inference} has no chains: it has converged if the curve is flat at its end."
        return Convergence(verdict, problems, pictures)
    values = model.function_values(X)[:, :, 0].reshape(*model.posterior.draws, -1)
    most_varied = int(np.argmax(np.std(np.mean(values, 1), 0) + np.std(values, (0, 1))))
    pictures.append(draw("chains", "one function value over the draws", plots.chains, values[..., most_varied]))
    return Convergence(str(model.diagnose(X)), problems, pictures)


def relevance_picture(model: FittedModel, relevance: Relevance) -> Picture:
    """The relevance of the inputs."""
    figure, axes = new_figure(height=1.2 + 0.28 * min(len(relevance.mean), plots.MOST_BARS))
    plots.relevance(axes, relevance, model.feature_names)
    return picture(figure, "relevance", "relevance of the inputs")


def slices(model: FittedModel, X: np.ndarray, relevance: Relevance) -> list[Picture]:
    """The prediction along each of the most relevant inputs; of several targets the first."""
    pictures = []
    for i, column in enumerate(np.argsort(relevance.mean)[::-1][:SLICES]):
        along = model.slice_along(X, int(column))
        pictures.append(draw(f"slice{i}", f"prediction along {along.name}", plots.slice_bands, along))
    return pictures


def hidden_layers(model: FittedModel, X: np.ndarray, relevance: Relevance) -> list[Picture]:
    """Of each hidden layer the output that varies most, against the most relevant input."""
    column = int(np.argmax(relevance.mean))
    name, pictures = model.feature_names[column], []
    for number, outputs in enumerate(model.hidden_layers(X), start=1):
        unit = int(np.argmax(np.std(outputs.mean(0), axis=0)))
        label = f"layer {number}, output {unit + 1}"
        pictures.append(draw(f"hidden{number}", label, plots.hidden_layer, X[:, column], outputs, name, unit, number))
    return pictures


def settings(model: FittedModel) -> tuple[Rows, Rows]:
    """Settings and versions, in two halves to show side by side."""
    from deepwell import __version__

    values = {"deepwell": __version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    values |= {"seconds": f"{model.seconds:.1f}", "seed": model.seed, "preset": model.preset}
    values |= {name.replace("_", " "): value for name, value in dataclasses.asdict(model.settings).items()}
    rows = [(name, {"value": str(value)}) for name, value in values.items()]
    half = (len(rows) + 1) // 2
    return dict(rows[:half]), dict(rows[half:])


def draw(name: str, description: str, plot: Callable[..., None], *results: Any) -> Picture:
    """A picture of one panel: ``plot(axes, *results)``."""
    figure, axes = new_figure()
    plot(axes, *results)
    return picture(figure, name, description)


def new_figure(width: float = 4.6, height: float = 3.2) -> tuple[Any, Any]:
    """A figure of one panel, so that a narrow screen can show panels one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()
