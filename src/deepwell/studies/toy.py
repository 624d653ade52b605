"""``toy``: two explanations of seven points; which of them variational inference sees, and which the sampler."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
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
from deepwell.studies import toy_problem as toy
from deepwell.studies.comparison import table
from deepwell.studies.options import HOW, Options
from deepwell.studies.page import Page
from deepwell.studies.rows import Row, Store
from deepwell.studies.sweep import Job, Writer, sweep_and_publish

KEY = ("kind", "method", "noise_variance", "seed", *HOW)
NOISES = (0.02, 0.01, 0.005)
"""Noise variances, y having variance 1; the first is the one drawn."""
METHODS: dict[str, dict[str, Any]] = {
    "DSVI": {"inference": "dsvi", "burn_in": 5_000, "num_samples": 400},
    "SGHMC": {"inference": "sghmc", "burn_in": 3_000, "num_samples": 400, "spacing": 50},
    "SGHMC, 5 times as long": {"inference": "sghmc", "burn_in": 3_000, "num_samples": 400, "spacing": 250},
}
SMOKE: dict[str, Any] = {"burn_in": 50, "num_samples": 8, "spacing": 2, "num_chains": 1}
SEEDS, STARTS = 64, 64
VERDICT_NOISE, VERDICT_SEED = 0.005, 1
SHRUNK = 0.3
"""Runs start at draws of the prior times this: near the library's own start, v = 0, which is one for all."""
BOTH = 0.1
"""A run covers both modes if each has at least such a share of its samples."""
DRAWN, PLACES = 40, np.linspace(-2.4, 2.4, 61)
"""Samples that the figure shows, and the places along a layer's input."""


def run_toy(options: Options) -> None:
    """Rows, table, figure."""
    options = options.of_study("default", (*toy.SETTINGS, "noise_variance", "inference"), SMOKE, SEEDS)
    store = Store(options.folder, "toy", KEY)
    sweep_and_publish(store, options, list(_jobs(options)), _in_words, partial(page, options.seed))


def _jobs(options: Options) -> Iterator[Job]:
    how = options.how()
    for settings in METHODS.values():
        options.settings_of({**toy.SETTINGS, **settings})
    noises, seeds = (NOISES[:1], 2) if options.smoke else (NOISES, SEEDS)
    methods = list(METHODS)[:2] if options.smoke else list(METHODS)

    def job(kind: str, member: Row, count: int = 1, cost: float = 1.0) -> Job:
        members = [{"kind": kind, **member, "seed": options.seed + seed, **how} for seed in range(count)]
        title = ", ".join([kind, *map(str, member.values()), options.in_words()])
        return Job(title, members, partial(WORK[kind], options), cost)

    for noise in noises:
        yield job("maxima", {"noise_variance": noise})
    for method in methods[:2]:
        yield job("picture", {"method": method, "noise_variance": noises[0]}, cost=2.0)
    yield job("verdict", {"method": "SGHMC", "noise_variance": VERDICT_NOISE}, cost=3.0)
    for noise in noises:
        for method in methods:
            cost = 5.0 if METHODS[method].get("spacing", 0) > 50 else 1.0
            yield job("occupancy", {"method": method, "noise_variance": noise}, seeds, cost)


def fitted(member: Row, init: FittedModel | None) -> FittedModel:
    """One fit of the points, theta fixed."""
    settings = {**toy.SETTINGS, "noise_variance": member["noise_variance"], **METHODS[member["method"]]}
    if init is not None:
        settings = {
            name: value for name, value in settings.items() if name not in ("hidden_variance", "noise_variance")
        }
    settings |= member["settings"]
    return fit(toy.X, toy.Y, preset=member["preset"], seed=member["seed"], init=init, **settings)


def _maxima(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """Both modes' log joint densities, and what lies below."""
    for member in members:
        found = modes_first(member["noise_variance"], member["seed"])
        rest = {
            "log_joint": np.round(found.log_joint[:5], 3).tolist(),
            "starts": found.starts[:5].tolist(),
            "hidden": np.round(found.hidden[:2], 4).tolist(),
            "layers": _layers(toy.toy_model(member["noise_variance"]), jnp.asarray(found.v[:2])),
        }
        write(member, rest)


@cache
def modes_first(noise_variance: float, seed: int = 0) -> toy.Maxima:
    """All maxima, the two highest first: A, which puts the middle point to the right, then B."""
    found = toy.find_maxima(noise_variance, STARTS, seed)
    best = sorted((0, 1), key=lambda i: -found.hidden[i, len(toy.X) // 2])
    order = [*best, *range(2, len(found.starts))]
    return toy.Maxima(*(part[order] for part in found))


def _occupancy(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """Shares of both modes among the samples of fits that start near v = 0, each elsewhere."""
    first = members[0]
    any_fit = fitted({**first, "method": "SGHMC"}, None)
    for member in members:
        start = started_at(any_fit, SHRUNK * toy.prior_draws(1, member["seed"])[0])
        begun = time.perf_counter()
        model = as_samples(fitted(member, start))
        a, b = toy.shares(model.hidden_layers(toy.X)[0][..., 0], modes_first(member["noise_variance"]).hidden)
        seconds = round(time.perf_counter() - begun, 2)
        write(member, {"share_of_a": round(float(a), 4), "share_of_b": round(float(b), 4), "seconds": seconds})


def _picture(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """The functions of both layers under some samples, along each layer's input."""
    for member in members:
        model = as_samples(fitted(member, None))
        posterior: Any = model.posterior
        flat = jax.vmap(lambda *v: ravel_pytree(v)[0])(*(v[0] for v in posterior.samples))
        shown = flat[np.linspace(0, len(flat) - 1, min(DRAWN, len(flat))).astype(int)]
        write(member, {"layers": _layers(posterior.model, shown)})


def _verdict(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """What ``diagnose`` says of four chains."""
    for member in members:
        found = four_chains(
            member["noise_variance"], VERDICT_SEED + member["seed"], member["preset"], **member["settings"]
        )
        write(member, {"verdict": str(found)})


WORK = {"maxima": _maxima, "occupancy": _occupancy, "picture": _picture, "verdict": _verdict}


def four_chains(noise_variance: float, seed: int, preset: str = "default", **settings: Any) -> Any:
    """Four chains on the points through ``deepwell.fit``, diagnosed on a grid between the outermost points."""
    chosen = {**toy.SETTINGS, **METHODS["SGHMC"], "num_chains": 4, **settings}
    model = fit(toy.X, toy.Y, preset=preset, seed=seed, noise_variance=noise_variance, **chosen)
    return model.diagnose(np.linspace(toy.X[0], toy.X[-1], 41))


def started_at(model: FittedModel, v: np.ndarray) -> FittedModel:
    """The model with one sample, this v."""
    posterior: Any = model.posterior
    outputs = ravel_pytree(posterior.model.zero_outputs())[1](jnp.asarray(v, float))
    samples = jax.tree.map(lambda x: x[None, None], outputs)
    noise = jax.tree.map(lambda x: x[:1, :1], posterior.noise)
    return dataclasses.replace(model, posterior=SharedTheta(posterior.model, samples, noise))


def as_samples(model: FittedModel) -> FittedModel:
    """Samples of v in the place of q(v): v = mean + C epsilon."""
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
    curves = [jax.vmap(lambda v, i=i: toy.layer_function(model, v, i, places))(flat) for i in range(2)]
    return np.round(np.asarray(curves, np.float64), 3).tolist()


def page(seed: int, rows: Sequence[Row]) -> Page | None:
    """Table and figure, once there is a row of each kind; only the runs have other seeds than the first."""
    known = [None, *METHODS]
    rows = [row for row in rows if row["seed"] == seed or row["kind"] == "occupancy"]
    rows.sort(key=lambda row: (-row["noise_variance"], known.index(row.get("method")), row["seed"]))
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in WORK}
    if not all(by_kind.values()):
        return None
    maxima = [
        [row["noise_variance"], *(f"{x:.2f}" for x in row["log_joint"][:3]), *row["starts"][:3]]
        for row in by_kind["maxima"]
    ]
    occupied = []
    for noise, method in dict.fromkeys((row["noise_variance"], row["method"]) for row in by_kind["occupancy"]):
        runs = [row for row in by_kind["occupancy"] if (row["noise_variance"], row["method"]) == (noise, method)]
        a, b = (np.array([row[f"share_of_{mode}"] for row in runs]) for mode in "ab")
        found = (a >= BOTH) & (b < BOTH), (b >= BOTH) & (a < BOTH), (a >= BOTH) & (b >= BOTH), (a < BOTH) & (b < BOTH)
        occupied.append([noise, method, len(runs), *(f"{np.mean(which):.0%}" for which in found)])
    paragraphs = [
        "# Two modes\n",
        "Seven points, two layers of width 1, theta fixed (`experiments/toy_problem.py`). Local maxima of the log "
        f"joint density of v, from {STARTS} draws of the prior:\n",
        table(["noise variance", "A", "B", "next", "starts to A", "to B", "to next"], maxima),
        f"Runs that start at {SHRUNK} times a draw of the prior, and the modes that have at least {BOTH:.0%} of their "
        "samples (neither: the run is in a lower maximum):\n",
        table(["noise variance", "method", "runs", "A alone", "B alone", "both", "neither"], occupied),
        f"`diagnose` of four chains at noise variance {VERDICT_NOISE}:\n",
        f"> {by_kind['verdict'][0]['verdict']}\n",
    ]
    return Page(paragraphs, toy_figure.draw_toy(by_kind, NOISES[0], PLACES, BOTH))


def _in_words(row: Row) -> str:
    named = {"kind": row["kind"], "method": row.get("method"), "noise variance": row["noise_variance"]}
    found = f", A {row['share_of_a']:.0%}, B {row['share_of_b']:.0%}" if "share_of_a" in row else ""
    return ", ".join(str(value) for value in named.values() if value is not None) + f", seed {row['seed']}{found}"
