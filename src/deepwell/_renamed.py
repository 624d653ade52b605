"""Modules by the names they had up to version 0.5: importing one gives its new form, and a warning that names it.

These names go with version 0.7.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

RENAMED = {
    "deepwell.commands.looking": "deepwell.cli.main",
    "deepwell.commands.modelling": "deepwell.cli.main",
    "deepwell.commands.options": "deepwell.cli.options",
    "deepwell.commands.reproduce": "deepwell.cli.reproduce",
    "deepwell.data.errors": "deepwell.errors",
    "deepwell.data.pictures": "deepwell.data.idx_files",
    "deepwell.data.targets": "deepwell.data.response",
    "deepwell.experiments.agreement": "deepwell.assess.check.agreement",
    "deepwell.experiments.check": "deepwell.assess.check.run",
    "deepwell.experiments.check_picture": "deepwell.assess.check.picture",
    "deepwell.experiments.compare": "deepwell.studies.comparison",
    "deepwell.experiments.depths": "deepwell.assess.depths",
    "deepwell.experiments.evaluate": "deepwell.assess.evaluate",
    "deepwell.experiments.exact_law": "deepwell.assess.check.exact_law",
    "deepwell.experiments.failures": "deepwell.studies.failures",
    "deepwell.experiments.figures": "deepwell.studies.figures",
    "deepwell.experiments.made": "deepwell.studies.synthetic",
    "deepwell.experiments.options": "deepwell.studies.options",
    "deepwell.experiments.provenance": "deepwell.studies.provenance",
    "deepwell.experiments.published": "deepwell.studies.paper_scores",
    "deepwell.experiments.publishing": "deepwell.studies.study_page",
    "deepwell.experiments.ranks": "deepwell.studies.ranks",
    "deepwell.experiments.reproducing": "deepwell.studies.registry",
    "deepwell.experiments.results": "deepwell.studies.row_store",
    "deepwell.experiments.simulation": "deepwell.assess.check.simulation",
    "deepwell.experiments.small_problems": "deepwell.assess.small_problems",
    "deepwell.experiments.study_curves": "deepwell.studies.curves",
    "deepwell.experiments.study_gaussianity": "deepwell.studies.gaussianity",
    "deepwell.experiments.study_tables": "deepwell.studies.large_tables",
    "deepwell.experiments.study_toy": "deepwell.studies.toy",
    "deepwell.experiments.study_uci": "deepwell.studies.uci",
    "deepwell.experiments.sweeping": "deepwell.studies.sweep",
    "deepwell.experiments.toy_figure": "deepwell.studies.toy_figure",
    "deepwell.experiments.toy_problem": "deepwell.studies.toy_problem",
    "deepwell.inference.compiling": "deepwell.numerics.jit",
    "deepwell.inference.methods": "deepwell.inference.registry",
    "deepwell.inference.posteriors": "deepwell.inference.posterior",
    "deepwell.inference.run": "deepwell.inference.driver",
    "deepwell.interfaces.arviz": "deepwell.predict.arviz",
    "deepwell.interfaces.baselines": "deepwell.assess.baselines",
    "deepwell.interfaces.callbacks": "deepwell.fits.csv_log",
    "deepwell.interfaces.checkpoints": "deepwell.store.checkpoint",
    "deepwell.interfaces.classifier": "deepwell.doors.classifier",
    "deepwell.interfaces.console": "deepwell.cli.console",
    "deepwell.interfaces.containers": "deepwell.store.tensor_file",
    "deepwell.interfaces.demo": "deepwell.assess.demo",
    "deepwell.interfaces.estimators": "deepwell.doors.estimator",
    "deepwell.interfaces.files": "deepwell.fits.fitted",
    "deepwell.interfaces.fitted": "deepwell.fits.fitted",
    "deepwell.interfaces.fitting": "deepwell.fits.fit",
    "deepwell.interfaces.grouping": "deepwell.fits.group",
    "deepwell.interfaces.interrupting": "deepwell.fits.interrupt",
    "deepwell.interfaces.locks": "deepwell.store.locks",
    "deepwell.interfaces.memory": "deepwell.fits.memory",
    "deepwell.interfaces.page": "deepwell.assess.page",
    "deepwell.interfaces.plots": "deepwell.doors.plots",
    "deepwell.interfaces.preparing": "deepwell.fits.prepare",
    "deepwell.interfaces.presets": "deepwell.fits.presets",
    "deepwell.interfaces.program_cache": "deepwell.store.program_cache",
    "deepwell.interfaces.progress": "deepwell.fits.progress",
    "deepwell.interfaces.reading": "deepwell.model.likelihoods.registry",
    "deepwell.interfaces.regressor": "deepwell.doors.regressor",
    "deepwell.interfaces.report": "deepwell.assess.report",
    "deepwell.interfaces.settings": "deepwell.fits.settings",
    "deepwell.interfaces.starting": "deepwell.fits.start",
    "deepwell.model.bnn": "deepwell.model.net",
    "deepwell.model.initialise": "deepwell.model.initial",
    "deepwell.model.linalg": "deepwell.numerics.linalg",
    "deepwell.model.randomness": "deepwell.numerics.randomness",
    "deepwell.predict.classes": "deepwell.predict.class_probabilities",
    "deepwell.predict.counts": "deepwell.predict.count_mixture",
    "deepwell.predict.depths": "deepwell.predict.depth_comparison",
    "deepwell.predict.metrics": "deepwell.predict.scores",
    "deepwell.predict.numbers": "deepwell.predict.distribution",
    "deepwell.predict.posterior": "deepwell.predict.blocks",
}
ROOMS = ("deepwell.interfaces", "deepwell.experiments", "deepwell.commands")
"""Packages that are no more."""


class _OldNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what ``RENAMED`` and ``ROOMS`` list, after every other finder has failed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in RENAMED and name not in ROOMS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name in ROOMS)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """The usual empty module, which ``exec_module`` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in ROOMS:
            return
        new = RENAMED[module.__name__]
        warnings.warn(
            f"{module.__name__} is now {new}; the old name goes with version 0.7", FutureWarning, stacklevel=2
        )
        sys.modules[module.__name__] = importlib.import_module(new)


def answer_to_old_names() -> None:
    """Make imports by the old names work."""
    sys.meta_path.append(_OldNames())
