"""``gaussianity``: is the posterior of the inducing outputs Gaussian?

The paper's test: 200 draws of one chain, 50 iterations apart; the kurtosis test (Anscombe, Glynn 1983) on 100 inducing
outputs u = L_ZZ v chosen at random; p-values below 1e-5 (0.01 over 900 tests) reject. The test takes its draws to be
independent, and these are not. The control shows what that does: at depth 1, theta frozen, the posterior is Gaussian
exactly, so every rejection there is false. The test done properly takes one draw from each of 200 chains at the same
theta, which start at the draws of the one chain and run on for long, with the step and friction of the preset default,
which get farther. What they remember of their start shows: neighbours started at consecutive draws, so neighbouring
draws are correlated until it is forgotten.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deepwell.errors import InputError
from deepwell.fits.fit import fit
from deepwell.fits.fitted import FittedModel
from deepwell.inference.deep_gp_posteriors import SharedTheta
from deepwell.studies import figures
from deepwell.studies.comparison import table
from deepwell.studies.figures import MANY, ONE
from deepwell.studies.options import HOW, Options, chosen
from deepwell.studies.page import Page
from deepwell.studies.provenance import data_hash
from deepwell.studies.rows import Row, Store
from deepwell.studies.sweep import Job, Writer, sweep_and_publish
from deepwell.studies.uci import SETS, relative_cost, rows_of_split

KEY = ("dataset", "depth", "draws", "seed", *HOW)
THRESHOLD, OUTPUTS = 1e-5, 100
FEWEST = 20
"""Draws that the test asks for: its normal approximation holds from there on (Anscombe, Glynn 1983)."""
APART: dict[str, Any] = {
    "preset": "default", "fixed": ["*"], "burn_in": 1_000, "num_samples": 1, "spacing": 5_000, "window_size": 1,
}  # fmt: skip
"""How each of the many chains runs: the preconditioner is tuned, then frozen for ``spacing`` iterations to one draw."""
REMEMBERED = 0.15
"""A median correlation of neighbouring chains above this says that they have not forgotten their start; that of 100
outputs of 200 independent draws has a standard deviation of 0.07 at most."""
SMOKE_APART: dict[str, Any] = {"burn_in": 20, "spacing": 20}


def run_gaussianity(options: Options) -> None:
    """Rows, table, figure."""
    options = options.of_study("paper", ("depth", "inference", "fixed", "num_chains"))
    store = Store(options.folder, "gaussianity", KEY)
    names = chosen("data set", options.datasets, SETS, ("energy",) if options.smoke else None)
    depths = chosen("depth", options.depths, (1, 2, 3, 4, 5), (2,) if options.smoke else (1, 2))
    for depth in depths:
        draws = options.settings_of({"depth": depth}).num_samples
        if draws < FEWEST:
            raise InputError(f"num_samples={draws} is too few: the test of Gaussianity takes {FEWEST} draws or more")
    sweep_and_publish(store, options, list(_jobs(options, names, depths)), _in_words, page)


def _jobs(options: Options, names: Sequence[str], depths: Sequence[int]) -> Iterator[Job]:
    for name in names:
        for depth in depths:
            common = {"dataset": name, "depth": depth, "seed": options.seed, **options.how()}
            members = [{**common, "draws": draws} for draws in (ONE, MANY)]
            cost = depth * relative_cost(name)
            title = f"{name}, depth {depth}, {options.in_words()}"
            yield Job(title, members, partial(work, options), cost)


def work(options: Options, members: Sequence[Row], folder: Path, write: Writer) -> None:
    """A chain as in the paper, then many from its draws."""
    first = members[0]
    data = options.table(first["dataset"])
    X, y = data.X.to_numpy(float), data.y.to_numpy()
    train, _ = rows_of_split(data, X, 0, first["seed"])
    common: dict[str, Any] = {"seed": first["seed"], "every": options.every, "verbose": options.verbose}
    known = {"rows": len(train), "data": data_hash(X, y)}
    settings = {"depth": first["depth"], **first["settings"]}
    one = fit(X[train], y[train], preset=first["preset"], checkpoint=folder / "one", **common, **settings)
    by_draws = {member["draws"]: member for member in members}
    if ONE in by_draws:
        write(by_draws[ONE], {**tested(one, first["seed"]), **known})
    if MANY in by_draws:
        start = one_draw_a_chain(one)
        shape = ("depth", "num_inducing", "width")  # that of the start
        how = {name: value for name, value in settings.items() if name not in shape}
        how = {"batch_size": one.settings.batch_size, **how, **APART, **(SMOKE_APART if options.smoke else {})}
        chains = start.posterior.draws[0]
        many = fit(X[train], y[train], init=start, num_chains=chains, checkpoint=folder / "many", **common, **how)
        write(by_draws[MANY], {**tested(many, first["seed"]), **known})


def one_draw_a_chain(model: FittedModel) -> FittedModel:
    """The draws of one chain as one draw each of many."""
    posterior = model.posterior
    assert isinstance(posterior, SharedTheta)
    swapped = jax.tree.map(lambda x: x.reshape(-1, 1, *x.shape[2:]), (posterior.samples, posterior.noise))
    return dataclasses.replace(model, posterior=SharedTheta(posterior.model, *swapped))


def inducing_outputs(posterior: SharedTheta) -> np.ndarray:
    """u = L_ZZ v of all layers, (draw, output), the draws of all chains one after the other."""
    parts = []
    for factor, v in zip(posterior.model.prepare(), posterior.samples, strict=True):
        inverse, outputs = np.asarray(factor.inverse, np.float64), np.asarray(v, np.float64)
        flat = outputs.reshape(-1, *outputs.shape[2:])
        parts.append(np.linalg.solve(inverse, flat).reshape(len(flat), -1))
    return np.concatenate(parts, axis=1)


def tested(model: FittedModel, seed: int) -> Row:
    """p-values of the outputs chosen, and the draws of the one that looks the least Gaussian."""
    assert isinstance(model.posterior, SharedTheta)
    u = inducing_outputs(model.posterior)
    columns = np.random.default_rng([seed, 100]).choice(u.shape[1], min(OUTPUTS, u.shape[1]), replace=False)
    u = u[:, columns]
    p = kurtosis_p_values(u)
    worst = int(np.argmin(p))
    return {
        "below_threshold": int(np.sum(p < THRESHOLD)),
        "outputs": len(p),
        "smallest_p": float(f"{p[worst]:.3g}"),
        "autocorrelation": round(float(np.median(autocorrelation(u))), 3),
        "p_values": [float(f"{value:.3g}") for value in p],
        "worst_draws": np.round(_standard(u[:, worst]), 3).tolist(),
        "seconds": round(model.seconds, 1),
    }


def kurtosis_p_values(draws: np.ndarray) -> np.ndarray:
    """Of the Anscombe-Glynn test of every column."""
    from scipy.stats import kurtosistest

    return np.asarray(kurtosistest(draws, axis=0).pvalue)


def autocorrelation(draws: np.ndarray) -> np.ndarray:
    """Of consecutive draws, of one chain or of neighbouring ones, by column."""
    centred = draws - np.mean(draws, 0)
    return np.sum(centred[1:] * centred[:-1], 0) / np.sum(centred**2, 0)


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - np.mean(values)) / np.std(values)


def page(rows: Sequence[Row]) -> Page:
    """Table, verdict, figure."""
    rows = sorted(rows, key=lambda row: (SETS.index(row["dataset"]), row["depth"], row["draws"] != ONE))
    lines = []
    for row in rows:
        rejected = f"{row['below_threshold']}/{row['outputs']}"
        drawn = [row["dataset"], row["depth"], row["draws"], len(row["worst_draws"])]
        lines.append([*drawn, rejected, f"{row['smallest_p']:.1e}", f"{row['autocorrelation']:.2f}"])
    header = ["set", "depth", "draws from", "draws", f"p < {THRESHOLD:.0e}", "smallest p", "autocorrelation"]
    paragraphs = [
        "# Is the posterior Gaussian?\n",
        "Kurtosis test on inducing outputs chosen at random. At depth 1 the posterior is Gaussian exactly, so what is "
        "rejected there is rejected falsely. Autocorrelation: of consecutive draws of one chain, or of the draws of "
        "chains that started at consecutive ones, median over the outputs.\n",
        table(header, lines),
        *[f"- {sentence}\n" for sentence in verdict(rows)],
    ]
    return Page(paragraphs, figures.gaussianity(rows, THRESHOLD))


def verdict(rows: Sequence[Row]) -> list[str]:
    """How many sets are rejected by each test, in words."""
    said = []
    for draws in (ONE, MANY):
        for depth in sorted({row["depth"] for row in rows}):
            some = [row for row in rows if (row["draws"], row["depth"]) == (draws, depth)]
            if some:
                rejected = [row["dataset"] for row in some if row["below_threshold"]]
                named = f": {', '.join(rejected)}" if rejected else ""
                falsely = ", falsely" if depth == 1 and rejected else ""
                said.append(f"Depth {depth}, {draws}: {len(rejected)} of {len(some)} sets rejected{falsely}{named}.")
    remember = [row for row in rows if row["draws"] == MANY and row["autocorrelation"] > REMEMBERED]
    if remember:
        named = ", ".join(f"{row['dataset']} at depth {row['depth']}" for row in remember)
        said.append(
            f"Many chains that have not forgotten their start, so that their draws are not independent: {named}."
        )
    return said


def _in_words(row: Row) -> str:
    name = f"{row['dataset']}, depth {row['depth']}, {row['draws']}"
    return f"{name}: {row['below_threshold']} of {row['outputs']} below {THRESHOLD:.0e}"
