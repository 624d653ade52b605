"""``gaussianity``: is the posterior of the inducing outputs Gaussian?

The paper's test takes 200 draws of one chain, 50 iterations apart, and applies the kurtosis test (Anscombe and Glynn,
1983) to 100 inducing outputs u = L_ZZ v chosen at random; p-values below 1e-5 (0.01 over 900 tests) reject. The test
assumes independent draws, and these are correlated. The control shows what that does: at depth 1 with theta frozen the
posterior is exactly Gaussian, so every rejection there is false.

The proper test takes one draw from each of 200 chains at the same theta. They start at the draws of the one chain and
run on for long, with the step size and friction of the preset ``default``, which move further. Neighbouring chains
start at consecutive draws, so their draws stay correlated until the start is forgotten.
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
from deepwell.studies.benchmark_sets import UCI_SETS, load_split, relative_cost
from deepwell.studies.comparison import markdown_table
from deepwell.studies.figures import MANY, ONE
from deepwell.studies.job import Job, RowWriter
from deepwell.studies.options import StudyDefaults, StudyOptions, select
from deepwell.studies.row_store import Row
from deepwell.studies.study import Study
from deepwell.studies.study_page import StudyPage

THRESHOLD, OUTPUTS = 1e-5, 100
FEWEST_DRAWS = 20
"""The normal approximation of the test holds from here on (Anscombe and Glynn, 1983)."""
MANY_CHAINS: dict[str, Any] = {
    "preset": "default", "fixed": ["*"], "burn_in": 1_000, "num_samples": 1, "spacing": 5_000, "window_size": 1,
    "local": False,
}  # fmt: skip
"""Settings of the many chains: the preconditioner adapts, then is frozen for ``spacing`` iterations to one draw."""
MANY_CHAINS_SMOKE: dict[str, Any] = {"burn_in": 20, "spacing": 20}
STILL_CORRELATED = 0.15
"""A median correlation of neighbouring chains above this means that they still remember their start. The median over
100 outputs of 200 independent draws has a standard deviation of at most 0.07."""


def jobs(options: StudyOptions) -> Iterator[Job]:
    """A job for each set and depth."""
    datasets = select("data set", options.datasets, tuple(UCI_SETS), ("energy",) if options.smoke else None)
    depths = select("depth", options.depths, (1, 2, 3, 4, 5), (2,) if options.smoke else (1, 2))
    for depth in depths:
        draws = options.fit_settings({"depth": depth}).num_samples
        if draws < FEWEST_DRAWS:
            raise InputError(f"num_samples={draws} is too few: the test of Gaussianity needs {FEWEST_DRAWS} or more")
    for dataset in datasets:
        for depth in depths:
            common = options.row(dataset=dataset, depth=depth)
            members = [{**common, "draws": draws} for draws in (ONE, MANY)]
            title = f"{dataset}, depth {depth}, {options.in_words()}"
            yield Job(title, members, partial(run_tests, options), cost=depth * relative_cost(dataset))


def run_tests(options: StudyOptions, members: Sequence[Row], folder: Path, write: RowWriter) -> None:
    """Test the draws of one chain, then those of many chains that start at them."""
    first = members[0]
    split = load_split(first["dataset"], 0, first["seed"], options.smoke)
    X, y = split.training
    common: dict[str, Any] = {"seed": first["seed"], "every": options.every, "verbose": options.verbose}
    data = {"rows": len(split.train), "data": split.hash}
    settings = {"depth": first["depth"], **first["settings"]}
    one = fit(X, y, preset=first["preset"], checkpoint=folder / "one", **common, **settings)
    by_draws = {member["draws"]: member for member in members}
    if ONE in by_draws:
        write(by_draws[ONE], {**kurtosis_results(one, first["seed"]), **data})
    if MANY in by_draws:
        start = one_draw_per_chain(one)
        set_by_start = ("depth", "num_inducing", "width")
        settings = {name: value for name, value in settings.items() if name not in set_by_start}
        settings = {"batch_size": one.settings.batch_size, **settings, **MANY_CHAINS}
        settings |= MANY_CHAINS_SMOKE if options.smoke else {}
        chains = start.posterior.draws[0]
        many = fit(X, y, init=start, num_chains=chains, checkpoint=folder / "many", **common, **settings)
        write(by_draws[MANY], {**kurtosis_results(many, first["seed"]), **data})


def one_draw_per_chain(model: FittedModel) -> FittedModel:
    """The same draws, each as the only draw of its own chain."""
    posterior = model.posterior
    assert isinstance(posterior, SharedTheta)
    swapped = jax.tree.map(lambda x: x.reshape(-1, 1, *x.shape[2:]), (posterior.samples, posterior.noise))
    return dataclasses.replace(model, posterior=SharedTheta(posterior.model, *swapped))


def inducing_outputs(posterior: SharedTheta) -> np.ndarray:
    """u = L_ZZ v of all layers, (draw, output), the draws of all chains one after the other."""
    parts = []
    for inverse_factor, v in zip(posterior.model.prepare().layers, posterior.samples, strict=True):
        inverse, outputs = np.asarray(inverse_factor, np.float64), np.asarray(v, np.float64)
        flat = outputs.reshape(-1, *outputs.shape[2:])
        parts.append(np.linalg.solve(inverse, flat).reshape(len(flat), -1))
    return np.concatenate(parts, axis=1)


def kurtosis_results(model: FittedModel, seed: int) -> Row:
    """p-values of outputs chosen at random, and the draws of the least Gaussian of them."""
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
        "worst_draws": np.round(_standardised(u[:, worst]), 3).tolist(),
        "seconds": round(model.seconds, 1),
    }


def kurtosis_p_values(draws: np.ndarray) -> np.ndarray:
    """p-values of the Anscombe-Glynn test, by column."""
    from scipy.stats import kurtosistest

    return np.asarray(kurtosistest(draws, axis=0).pvalue)


def autocorrelation(draws: np.ndarray) -> np.ndarray:
    """Correlation of consecutive draws, of one chain or of neighbouring chains, by column."""
    centred = draws - np.mean(draws, 0)
    return np.sum(centred[1:] * centred[:-1], 0) / np.sum(centred**2, 0)


def _standardised(values: np.ndarray) -> np.ndarray:
    return (values - np.mean(values)) / np.std(values)


def draw_page(options: StudyOptions, rows: Sequence[Row]) -> StudyPage:
    """Table, verdict, figure."""
    sets = list(UCI_SETS)
    rows = sorted(rows, key=lambda row: (sets.index(row["dataset"]), row["depth"], row["draws"] != ONE))
    lines = []
    for row in rows:
        rejected = f"{row['below_threshold']}/{row['outputs']}"
        draws = [row["dataset"], row["depth"], row["draws"], len(row["worst_draws"])]
        lines.append([*draws, rejected, f"{row['smallest_p']:.1e}", f"{row['autocorrelation']:.2f}"])
    header = ["set", "depth", "draws from", "draws", f"p < {THRESHOLD:.0e}", "smallest p", "autocorrelation"]
    paragraphs = [
        "# Is the posterior Gaussian?\n",
        "Kurtosis test on inducing outputs chosen at random. At depth 1 the posterior is exactly Gaussian, so every "
        "rejection there is false. Autocorrelation: the correlation of consecutive draws of one chain, or of draws of "
        "chains that started at consecutive ones; median over the outputs.\n",
        markdown_table(header, lines),
        *[f"- {sentence}\n" for sentence in verdict(rows)],
    ]
    return StudyPage(paragraphs, figures.gaussianity(rows, THRESHOLD))


def verdict(rows: Sequence[Row]) -> list[str]:
    """How many sets each test rejects, in words."""
    sentences = []
    for draws in (ONE, MANY):
        for depth in sorted({row["depth"] for row in rows}):
            tests = [row for row in rows if (row["draws"], row["depth"]) == (draws, depth)]
            if tests:
                rejected = [row["dataset"] for row in tests if row["below_threshold"]]
                names = f": {', '.join(rejected)}" if rejected else ""
                falsely = ", falsely" if depth == 1 and rejected else ""
                counted = f"{len(rejected)} of {len(tests)} sets rejected"
                sentences.append(f"Depth {depth}, {draws}: {counted}{falsely}{names}.")
    correlated = [row for row in rows if row["draws"] == MANY and row["autocorrelation"] > STILL_CORRELATED]
    if correlated:
        names = ", ".join(f"{row['dataset']} at depth {row['depth']}" for row in correlated)
        sentences.append(f"The many chains still remember their start, so their draws are not independent: {names}.")
    return sentences


def describe_row(row: Row) -> str:
    """energy, depth 1, one chain: 24 of 100 below 1e-05."""
    name = f"{row['dataset']}, depth {row['depth']}, {row['draws']}"
    return f"{name}: {row['below_threshold']} of {row['outputs']} below {THRESHOLD:.0e}"


GAUSSIANITY = Study(
    name="gaussianity",
    key=("dataset", "depth", "draws"),
    defaults=StudyDefaults("paper", own_settings=("depth", "inference", "fixed", "num_chains")),
    takes=("datasets", "depths", "every"),
    jobs=jobs,
    draw_page=draw_page,
    describe_row=describe_row,
)
