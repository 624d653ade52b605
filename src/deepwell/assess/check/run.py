"""``deepwell check``: is the sampler right on this machine and at this precision?

Three tests: chains against their exact law (``exact_law``), ranks of simulated truths (``simulation``), and agreement
with the No-U-Turn Sampler (``agreement``). A part with a twin runs it with an injected error, and fails unless the
error is caught: a test that catches nothing proves nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from deepwell.assess.check import agreement, exact_law, simulation
from deepwell.assess.check.picture import draw_check
from deepwell.assess.check.simulation import Case, RankHistogram, rank_histogram
from deepwell.errors import EXTRAS, InputError
from deepwell.fits.prepare import checked_seed
from deepwell.model.deep_gp import OBJECTIVES

Verdict = Literal["passed", "failed", "skipped", "reported"]
Outcome = tuple[Verdict, str]

DEPTH_ONE, TIGHT, LOOSE, LOOSE_16 = 3_072, 512, 256, 128
"""Replications at depth 1, where Z_1 = X, and where the bound is loose, with 1 and 16 inner samples."""
THOROUGH = 4
"""A thorough check takes this many times the chains and replications."""
SMALLEST_SHOWN = 1e-15


class Part(NamedTuple):
    """One test: its verdict, and a summary of the numbers behind it."""

    name: str
    verdict: Verdict
    summary: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict:<8}  {self.name}: {self.summary} ({self.seconds:.0f} s)"


@dataclass(frozen=True)
class CheckResult:
    """All parts, and the results that the picture shows."""

    machine: str
    parts: list[Part] = field(default_factory=list)
    laws: dict[str, exact_law.Law] = field(default_factory=dict)
    ranks: dict[str, RankHistogram] = field(default_factory=dict)
    agreements: list[agreement.Agreement] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(part.verdict != "failed" for part in self.parts)

    @property
    def verdict(self) -> str:
        """One sentence."""
        failed = [part.name for part in self.parts if part.verdict == "failed"]
        return f"failed: {'; '.join(failed)}" if failed else "the sampler is right here"

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)


def run_check(
    folder: Path | None,
    seed: int = 0,
    thorough: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> CheckResult:
    """Run every part; ``progress`` gets a line after each. Draw ``check.png`` in ``folder`` if there is one."""
    seed, times = checked_seed(seed), THOROUGH if thorough else 1
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
    result = CheckResult(_machine())
    progress(result.machine)

    def add(name: str, test: Callable[[], Outcome]) -> None:
        started = time.perf_counter()
        result.parts.append(Part(name, *test(), time.perf_counter() - started))
        progress(str(result.parts[-1]))

    for objective in OBJECTIVES:
        add(f"exact law, {objective}", partial(_law, result, objective, seed, times * exact_law.CHAINS))
    for case, replications, test in (
        (simulation.depth_one(), DEPTH_ONE, _ranks_and_twin),
        (simulation.tight(), TIGHT, _ranks),
        (simulation.loose(1), LOOSE, _loose),
        (simulation.loose(16), LOOSE_16, _loose),
    ):
        add(f"calibration, {case.name}", partial(test, result, case, seed, times * replications))
    add("agreement with NUTS, depth 2", partial(_agreement, result, seed))
    if folder is not None:
        draw_check(folder / "check.png", result.laws, result.ranks, result.agreements)
    return result


def _machine() -> str:
    number = jnp.zeros(())
    return f"{next(iter(number.devices())).device_kind}, {number.dtype}, JAX {jax.__version__}"


def _outcome(right: bool, caught: bool, summary: str) -> Outcome:
    if right and not caught:
        return "failed", f"{summary}: the injected error was not caught, so this test proves nothing"
    return ("passed" if right else "failed"), summary


def _shown(p: float) -> str:
    return f"p = {p:.2g}" if p > SMALLEST_SHOWN else f"p < {SMALLEST_SHOWN:.0e}"


def _law(result: CheckResult, objective: str, seed: int, chains: int) -> Outcome:
    law = exact_law.law_of_sampler(objective, seed, chains)
    result.laws[objective] = law
    summary = f"{chains} chains, {_shown(law.p)}; temperature 10 % off, {_shown(law.p_twin)}"
    return _outcome(law.p > exact_law.FLOOR, law.p_twin < exact_law.FLOOR, summary)


def _ranks_and_twin(result: CheckResult, case: Case, seed: int, replications: int) -> Outcome:
    ranks = _add_ranks(result, case, seed, replications)
    twin = rank_histogram(case, seed, replications, simulation.TWIN)
    summary = f"{_summary(ranks)}; noise 10 % off, {_shown(twin.p)}"
    return _outcome(ranks.p > simulation.FLOOR, twin.p < simulation.FLOOR, summary)


def _ranks(result: CheckResult, case: Case, seed: int, replications: int) -> Outcome:
    ranks = _add_ranks(result, case, seed, replications)
    return ("passed" if ranks.p > simulation.FLOOR else "failed"), _summary(ranks)


def _loose(result: CheckResult, case: Case, seed: int, replications: int) -> Outcome:
    ranks = _add_ranks(result, case, seed, replications)
    share = f"outermost quarter of ranks {100 * ranks.outermost:.0f} %, 25 % if calibrated"
    return "reported", f"{_summary(ranks)}; {share}"


def _add_ranks(result: CheckResult, case: Case, seed: int, replications: int) -> RankHistogram:
    result.ranks[case.name] = rank_histogram(case, seed, replications)
    return result.ranks[case.name]


def _summary(ranks: RankHistogram) -> str:
    return f"{len(ranks.ranks)} replications, {_shown(ranks.p)}"


def _agreement(result: CheckResult, seed: int) -> Outcome:
    if not agreement.can_be_tested():
        return "skipped", f"blackjax is not installed (pip install 'deepwell[{EXTRAS['blackjax']}]')"
    samplers = agreement.compare_samplers(seed)
    result.agreements.append(samplers)
    summary = (
        f"at most {samplers.gap:.2f} standard deviations apart; noise variance doubled, {samplers.twin_gap:.2f} apart"
    )
    return _outcome(samplers.gap < agreement.TOLERANCE, samplers.twin_gap > agreement.TOLERANCE, summary)
