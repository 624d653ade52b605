"""``toy``: two explanations of seven points. Which does variational inference find, and which does the sampler?"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from deepwell.fits.fit import fit
from deepwell.fits.fitted import FittedModel
from deepwell.inference.deep_gp_posteriors import SharedTheta, Variational
from deepwell.studies import toy_figure
from deepwell.studies import toy_problem as problem
from deepwell.studies.comparison import markdown_table
from deepwell.studies.job import Job, RowWriter
from deepwell.studies.options import StudyDefaults, StudyOptions
from deepwell.studies.row_store import Row
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage

NOISES = (0.02, 0.01, 0.005)
"""Noise variances, where y has variance 1. The figure shows the first."""
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "DSVI": {"inference": "dsvi", "burn_in": 5_000, "num_samples": 400},
    "SGHMC": {"inference": "sghmc", "burn_in": 3_000, "num_samples": 400, "spacing": 50},
    "SGHMC, 5 times as long": {"inference": "sghmc", "burn_in": 3_000, "num_samples": 400, "spacing": 250},
}
TOY_SMOKE_SETTINGS: dict[str, Any] = {"burn_in": 50, "num_samples": 8, "spacing": 2, "num_chains": 1}
SEEDS, STARTS = 64, 64
VERDICT_NOISE, VERDICT_SEED = 0.005, 1
START_SCALE = 0.3
"""Runs start at draws of the prior times this: near v = 0, the library's own start, but each at a different place."""
LEAST_SHARE = 0.1
"""A run covers a mode if the mode has at least this share of the run's samples."""
CURVES, PLACES = 40, np.linspace(-2.4, 2.4, 61)
"""Samples that the figure shows, and the places along a layer's input."""


def jobs(options: StudyOptions) -> Iterator[Job]:
    """A job for each kind of row, noise and method."""
    for settings in METHOD_SETTINGS.values():
        options.fit_settings({**problem.SETTINGS, **settings})
    noises, seeds = (NOISES[:1], 2) if options.smoke else (NOISES, SEEDS)
    methods = list(METHOD_SETTINGS)[:2] if options.smoke else list(METHOD_SETTINGS)

    def job(kind: str, fields: Row, count: int = 1, cost: float = 1.0) -> Job:
        row = options.row(kind=kind, **fields)
        members = [{**row, "seed": options.seed + seed} for seed in range(count)]
        title = ", ".join([kind, *map(str, fields.values()), options.in_words()])
        return Job(title, members, ROWS_BY_KIND[kind], cost)

    for noise in noises:
        yield job("maxima", {"noise_variance": noise})
    for method in methods[:2]:
        yield job("picture", {"method": method, "noise_variance": noises[0]}, cost=2.0)
    yield job("verdict", {"method": "SGHMC", "noise_variance": VERDICT_NOISE}, cost=3.0)
    for noise in noises:
        for method in methods:
            cost = 5.0 if METHOD_SETTINGS[method].get("spacing", 0) > 50 else 1.0
            yield job("occupancy", {"method": method, "noise_variance": noise}, seeds, cost)


def fit_points(member: Row, init: FittedModel | None) -> FittedModel:
    """One fit of the points with theta fixed."""
    settings = {**problem.SETTINGS, "noise_variance": member["noise_variance"], **METHOD_SETTINGS[member["method"]]}
    if init is not None:
        set_by_start = ("hidden_variance", "noise_variance")
        settings = {name: value for name, value in settings.items() if name not in set_by_start}
    settings |= member["settings"]
    return fit(problem.X, problem.Y, preset=member["preset"], seed=member["seed"], init=init, **settings)


def _maxima(members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """The log joint density at both modes and at the next maxima."""
    for member in members:
        maxima = modes_first(member["noise_variance"], member["seed"])
        results = {
            "log_joint": np.round(maxima.log_joint[:5], 3).tolist(),
            "starts": maxima.starts[:5].tolist(),
            "hidden": np.round(maxima.hidden[:2], 4).tolist(),
            "layers": _layers(problem.toy_model(member["noise_variance"]), jnp.asarray(maxima.v[:2])),
        }
        write(member, results)


@cache
def modes_first(noise_variance: float, seed: int = 0) -> problem.Maxima:
    """All maxima, the two highest first: A, which puts the middle point to the right, then B."""
    maxima = problem.find_maxima(noise_variance, STARTS, seed)
    modes = sorted((0, 1), key=lambda i: -maxima.hidden[i, len(problem.X) // 2])
    order = [*modes, *range(2, len(maxima.starts))]
    return problem.Maxima(*(part[order] for part in maxima))


def _occupancy(members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """Shares of both modes among the samples of fits that start near v = 0, each at a different place."""
    first = members[0]
    any_fit = fit_points({**first, "method": "SGHMC"}, None)
    for member in members:
        start = started_at(any_fit, START_SCALE * problem.prior_draws(1, member["seed"])[0])
        started = time.perf_counter()
        model = as_samples(fit_points(member, start))
        modes = modes_first(member["noise_variance"]).hidden
        a, b = problem.shares(model.hidden_layers(problem.X)[0][..., 0], modes)
        seconds = round(time.perf_counter() - started, 2)
        write(member, {"share_of_a": round(float(a), 4), "share_of_b": round(float(b), 4), "seconds": seconds})


def _picture(members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """The functions of both layers under some samples, along each layer's input."""
    for member in members:
        model = as_samples(fit_points(member, None))
        posterior: Any = model.posterior
        flat = jax.vmap(lambda *v: ravel_pytree(v)[0])(*(v[0] for v in posterior.samples))
        shown = flat[np.linspace(0, len(flat) - 1, min(CURVES, len(flat))).astype(int)]
        write(member, {"layers": _layers(posterior.model, shown)})


def _verdict(members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """What ``diagnose`` says of four chains."""
    for member in members:
        diagnosis = four_chains(
            member["noise_variance"], VERDICT_SEED + member["seed"], member["preset"], **member["settings"]
        )
        write(member, {"verdict": str(diagnosis)})


ROWS_BY_KIND = {"maxima": _maxima, "occupancy": _occupancy, "picture": _picture, "verdict": _verdict}


def four_chains(noise_variance: float, seed: int, preset: str = "default", **settings: Any) -> Any:
    """Four chains on the points through ``deepwell.fit``, diagnosed on a grid between the outermost points."""
    settings = {**problem.SETTINGS, **METHOD_SETTINGS["SGHMC"], "num_chains": 4, **settings}
    model = fit(problem.X, problem.Y, preset=preset, seed=seed, noise_variance=noise_variance, **settings)
    return model.diagnose(np.linspace(problem.X[0], problem.X[-1], 41))


def started_at(model: FittedModel, v: np.ndarray) -> FittedModel:
    """The model with one sample, this v."""
    posterior: Any = model.posterior
    outputs = ravel_pytree(posterior.model.zero_outputs())[1](jnp.asarray(v, float))
    samples = jax.tree.map(lambda x: x[None, None], outputs)
    noise = jax.tree.map(lambda x: x[:1, :1], posterior.noise)
    return dataclasses.replace(model, posterior=SharedTheta(posterior.model, samples, noise))


def as_samples(model: FittedModel) -> FittedModel:
    """The model with samples of q(v), v = mean + C epsilon, in place of q(v)."""
    q = model.posterior
    if not isinstance(q, Variational):
        return model
    rng = np.random.default_rng(model.seed)

    def drawn(layer: Any) -> jax.Array:
        epsilon = jnp.asarray(rng.standard_normal((q.num_draws, *layer.mean.shape)), float)
        return (layer.mean + jnp.einsum("wab,sbw->saw", layer.cholesky(), epsilon))[None]

    samples = tuple(drawn(layer) for layer in q.belief)
    return dataclasses.replace(model, posterior=SharedTheta(q.model, samples, q.noise))


def _layers(model: Any, flat: jax.Array) -> list[list[list[float]]]:
    """(layer, sample, place)."""
    places = jnp.asarray(PLACES, float)
    curves = [jax.vmap(lambda v, i=i: problem.layer_function(model, v, i, places))(flat) for i in range(2)]
    return np.round(np.asarray(curves, np.float64), 3).tolist()


def draw_page(options: StudyOptions, rows: Sequence[Row]) -> StudyPage | None:
    """Table and figure, once there is a row of each kind. Only occupancy has other seeds than the first."""
    order = [None, *METHOD_SETTINGS]
    rows = [row for row in rows if row["seed"] == options.seed or row["kind"] == "occupancy"]
    rows.sort(key=lambda row: (-row["noise_variance"], order.index(row.get("method")), row["seed"]))
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in ROWS_BY_KIND}
    if not all(by_kind.values()):
        return None
    maxima = [
        [row["noise_variance"], *(f"{x:.2f}" for x in row["log_joint"][:3]), *row["starts"][:3]]
        for row in by_kind["maxima"]
    ]
    paragraphs = [
        "# Two modes\n",
        "Seven points, two layers of width 1, theta fixed (`src/deepwell/studies/toy_problem.py`). Local maxima of the "
        f"log joint density of v, from {STARTS} draws of the prior:\n",
        markdown_table(["noise variance", "A", "B", "next", "starts to A", "to B", "to next"], maxima),
        f"Each run starts at {START_SCALE} times a draw of the prior. A run covers a mode that has at least "
        f"{LEAST_SHARE:.0%} of its samples; a run that covers neither is in a lower maximum:\n",
        _occupancy_table(by_kind["occupancy"]),
        f"`diagnose` of four chains at noise variance {VERDICT_NOISE}:\n",
        f"> {by_kind['verdict'][0]['verdict']}\n",
    ]
    return StudyPage(paragraphs, toy_figure.draw_toy(by_kind, NOISES[0], PLACES, LEAST_SHARE))


def _occupancy_table(rows: Sequence[Row]) -> str:
    """A line for each noise and method: how many runs cover A alone, B alone, both and neither."""
    lines = []
    for noise, method in dict.fromkeys((row["noise_variance"], row["method"]) for row in rows):
        runs = [row for row in rows if (row["noise_variance"], row["method"]) == (noise, method)]
        in_a, in_b = (np.array([row[f"share_of_{mode}"] for row in runs]) >= LEAST_SHARE for mode in "ab")
        covered = (in_a & ~in_b, in_b & ~in_a, in_a & in_b, ~in_a & ~in_b)
        lines.append([noise, method, len(runs), *(f"{np.mean(which):.0%}" for which in covered)])
    return markdown_table(["noise variance", "method", "runs", "A alone", "B alone", "both", "neither"], lines)


def describe_row(row: Row) -> str:
    """occupancy, DSVI, 0.02, seed 1, A 100%, B 0%."""
    fields = [row["kind"], row.get("method"), row["noise_variance"], f"seed {row['seed']}"]
    shares = [f"A {row['share_of_a']:.0%}", f"B {row['share_of_b']:.0%}"] if "share_of_a" in row else []
    return ", ".join(str(field) for field in (*fields, *shares) if field is not None)


TOY = Study(
    name="toy",
    key=("kind", "method", "noise_variance"),
    defaults=StudyDefaults("default", (*problem.SETTINGS, "noise_variance", "inference"), TOY_SMOKE_SETTINGS, SEEDS),
    takes=(),
    jobs=jobs,
    draw_page=draw_page,
    describe_row=describe_row,
)
