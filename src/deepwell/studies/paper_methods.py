"""The paper's methods by its own names, and ours named likewise."""

from typing import Any, NamedTuple

from deepwell.errors import InputError
from deepwell.studies.options import StudyOptions, select

DEPTHS = (1, 2, 3, 4, 5)


class PaperMethod(NamedTuple):
    """A method's family, number of layers (None: a net), our settings, and relative cost of an iteration."""

    family: str
    depth: int | None
    settings: dict[str, Any]
    cost: float


class _Family(NamedTuple):
    """Names at one layer and at more, and the relative cost of each layer."""

    single: str
    deep: str
    inference: str
    single_cost: float
    deep_cost: float

    def methods(self) -> dict[str, PaperMethod]:
        """One method for each depth."""
        named = {self.single: PaperMethod(self.single, 1, {"inference": self.inference, "depth": 1}, self.single_cost)}
        for depth in DEPTHS[1:]:
            settings = {"inference": self.inference, "depth": depth}
            named[f"{self.deep} {depth}"] = PaperMethod(self.deep, depth, settings, depth * self.deep_cost)
        return named


PAPER_METHODS = {
    "BNN": PaperMethod("BNN", None, {"inference": "bnn"}, 0.6),
    **_Family("SGP", "DGP", "dsvi", 1.0, 2.7).methods(),
    **_Family("Dec SGP", "Dec DGP", "dsvi-decoupled", 1.0, 2.5).methods(),
    **_Family("SGHMC SGP", "SGHMC DGP", "sghmc", 0.5, 1.0).methods(),
    **_Family("SGHMC-bayes SGP", "SGHMC-bayes DGP", "sghmc-bayes", 0.6, 1.2).methods(),
}
FAMILIES = tuple(dict.fromkeys(method.family for method in PAPER_METHODS.values()))
DEFAULT_METHODS = tuple(
    name for name, method in PAPER_METHODS.items() if method.family not in ("SGHMC SGP", "SGHMC-bayes SGP")
)


def select_methods(options: StudyOptions) -> list[str]:
    """Methods asked for by name (SGHMC DGP 2) or by family (SGHMC DGP), at the depths asked for."""
    families = [family for family in FAMILIES if family not in PAPER_METHODS]
    asked = select("method", options.methods, (*PAPER_METHODS, *families), DEFAULT_METHODS)
    names = [name for name, method in PAPER_METHODS.items() if name in asked or method.family in asked]
    if options.smoke and options.methods is None:
        names = ["SGP", "SGHMC DGP 2"]
    if options.depths is None:
        return names
    depths = select("depth", options.depths, DEPTHS)
    at_depths = [name for name in names if PAPER_METHODS[name].depth in (None, *depths)]
    if not at_depths:
        raise InputError(f"none of {', '.join(names)} has a depth of {', '.join(map(str, depths))}")
    return at_depths
