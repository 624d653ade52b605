"""``deepwell check``: is the sampler right on this machine and at this precision?

Three answers: chains against their exact law (``exact_law``), ranks of simulated truths (``simulation``), and the
No-U-Turn Sampler (``agreement``). Where there is a twin with an injected error it must be caught, or the part fails: a
test that catches nothing says nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from deepwell.assess import agreement, exact_law, simulation
from deepwell.assess.check_picture import draw_check
from deepwell.assess.simulation import Calibration, Case, calibration
from deepwell.errors import InputError
from deepwell.fits.prepare import checked_seed
from deepwell.model.deep_gp import OBJECTIVES

Verdict = Literal["passed", "failed", "skipped", "reported"]
Judged = tuple[Verdict, str]

DEPTH_ONE, TIGHT, LOOSE, LOOSE_16 = 3_072, 512, 256, 128
"""Replications at depth 1, where Z_1 = X, and where the bound is loose, with 1 and 16 inner samples."""
THOROUGH = 4
"""So many times as many chains and replications."""
SMALLEST_SHOWN = 1e-15


class Part(NamedTuple):
    """One test: its verdict and the numbers behind it, in words."""

    name: str
    verdict: Verdict
    words: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict:<8}  {self.name}: {self.words} ({self.seconds:.0f} s)"


@dataclass(frozen=True)
class Checked:
    """All parts, and what they are drawn from."""

    machine: str
    parts: list[Part] = field(default_factory=list)
    laws: dict[str, exact_law.Law] = field(default_factory=dict)
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    agreements: list[agreement.Agreement] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(part.verdict != "failed" for part in self.parts)

    @property
    def verdict(self) -> str:
        """In one sentence."""
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
) -> Checked:
    """Run every part, one line to ``progress`` after each, and draw ``check.png`` in ``folder`` if there is one."""
    seed, times = checked_seed(seed), THOROUGH if thorough else 1
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
    checked = Checked(_machine())
    progress(checked.machine)

    def add(name: str, test: Callable[[], Judged]) -> None:
        started = time.perf_counter()
        checked.parts.append(Part(name, *test(), time.perf_counter() - started))
        progress(str(checked.parts[-1]))

    for objective in OBJECTIVES:
        add(f"exact law, {objective}", partial(_law, checked, objective, seed, times * exact_law.CHAINS))
    for case, replications, test in (
        (simulation.depth_one(), DEPTH_ONE, _calibrated_with_twin),
        (simulation.tight(), TIGHT, _calibrated),
        (simulation.loose(1), LOOSE, _loose),
        (simulation.loose(16), LOOSE_16, _loose),
    ):
        add(f"calibration, {case.name}", partial(test, checked, case, seed, times * replications))
    add("agreement with NUTS, depth 2", partial(_agreement, checked, seed))
    if folder is not None:
        draw_check(folder / "check.png", checked.laws, checked.calibrations, checked.agreements)
    return checked


def _machine() -> str:
    number = jnp.zeros(())
    return f"{next(iter(number.devices())).device_kind}, {number.dtype}, JAX {jax.__version__}"


def _judged(right: bool, caught: bool, words: str) -> Judged:
    if right and not caught:
        return "failed", f"{words}: the injected error was not caught, so this test says nothing"
    return ("passed" if right else "failed"), words


def _shown(p: float) -> str:
    return f"p = {p:.2g}" if p > SMALLEST_SHOWN else f"p < {SMALLEST_SHOWN:.0e}"


def _law(checked: Checked, objective: str, seed: int, chains: int) -> Judged:
    found = exact_law.law_of_sampler(objective, seed, chains)
    checked.laws[objective] = found
    words = f"{chains} chains, {_shown(found.p)}; temperature 10 % off, {_shown(found.p_twin)}"
    return _judged(found.p > exact_law.FLOOR, found.p_twin < exact_law.FLOOR, words)


def _calibrated_with_twin(checked: Checked, case: Case, seed: int, replications: int) -> Judged:
    found = _calibrate(checked, case, seed, replications)
    twin = calibration(case, seed, replications, simulation.TWIN)
    words = f"{_ranks(found)}; noise 10 % off, {_shown(twin.p)}"
    return _judged(found.p > simulation.FLOOR, twin.p < simulation.FLOOR, words)


def _calibrated(checked: Checked, case: Case, seed: int, replications: int) -> Judged:
    found = _calibrate(checked, case, seed, replications)
    return ("passed" if found.p > simulation.FLOOR else "failed"), _ranks(found)


def _loose(checked: Checked, case: Case, seed: int, replications: int) -> Judged:
    found = _calibrate(checked, case, seed, replications)
    return "reported", f"{_ranks(found)}; outermost quarter of ranks {100 * found.outermost:.0f} %, calibrated 25 %"


def _calibrate(checked: Checked, case: Case, seed: int, replications: int) -> Calibration:
    checked.calibrations[case.name] = calibration(case, seed, replications)
    return checked.calibrations[case.name]


def _ranks(found: Calibration) -> str:
    return f"{len(found.ranks)} replications, {_shown(found.p)}"


def _agreement(checked: Checked, seed: int) -> Judged:
    if not agreement.can_be_tested():
        return "skipped", "blackjax is not installed (pip install 'deepwell[nuts]')"
    found = agreement.compare_samplers(seed)
    checked.agreements.append(found)
    words = f"at most {found.off:.2f} standard deviations off; noise variance doubled, {found.off_twin:.2f}"
    return _judged(found.off < agreement.TOLERANCE, found.off_twin > agreement.TOLERANCE, words)
