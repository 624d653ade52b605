"""deepwell: deep Gaussian processes whose posterior is sampled."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepwell.data.errors import InputError
    from deepwell.experiments.depths import compare_depths
    from deepwell.interfaces.callbacks import CsvLog, Event
    from deepwell.interfaces.classifier import DeepGPClassifier
    from deepwell.interfaces.containers import DeepwellFileError
    from deepwell.interfaces.files import load
    from deepwell.interfaces.fitted import FittedModel
    from deepwell.interfaces.fitting import fit
    from deepwell.interfaces.interrupting import Interrupted
    from deepwell.interfaces.presets import PRESETS
    from deepwell.interfaces.regressor import DeepGPRegressor
    from deepwell.interfaces.settings import Settings
    from deepwell.predict.classes import ClassProbabilities
    from deepwell.predict.counts import CountMixture
    from deepwell.predict.mixture import Mixture

__version__ = "0.5.0"

_WHERE = {
    "ClassProbabilities": "deepwell.predict.classes",
    "CountMixture": "deepwell.predict.counts",
    "CsvLog": "deepwell.interfaces.callbacks",
    "DeepGPClassifier": "deepwell.interfaces.classifier",
    "DeepGPRegressor": "deepwell.interfaces.regressor",
    "DeepwellFileError": "deepwell.interfaces.containers",
    "Event": "deepwell.interfaces.callbacks",
    "FittedModel": "deepwell.interfaces.fitted",
    "InputError": "deepwell.data.errors",
    "Interrupted": "deepwell.interfaces.interrupting",
    "Mixture": "deepwell.predict.mixture",
    "PRESETS": "deepwell.interfaces.presets",
    "Settings": "deepwell.interfaces.settings",
    "compare_depths": "deepwell.experiments.depths",
    "fit": "deepwell.interfaces.fitting",
    "load": "deepwell.interfaces.files",
}

__all__ = [
    "PRESETS",
    "ClassProbabilities",
    "CountMixture",
    "CsvLog",
    "DeepGPClassifier",
    "DeepGPRegressor",
    "DeepwellFileError",
    "Event",
    "FittedModel",
    "InputError",
    "Interrupted",
    "Mixture",
    "Settings",
    "compare_depths",
    "fit",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that ``import deepwell`` stays quick."""
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    if name in {"data", "model", "inference", "predict", "interfaces", "experiments"}:
        return importlib.import_module(f"deepwell.{name}")
    raise AttributeError(f"module 'deepwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "data", "__version__"])
