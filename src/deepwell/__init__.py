"""deepwell: deep Gaussian processes whose posterior is sampled."""

import importlib
from typing import TYPE_CHECKING, Any

from deepwell._renamed import answer_to_old_names

if TYPE_CHECKING:
    from deepwell.assess.depths import compare_depths
    from deepwell.doors.classifier import DeepGPClassifier
    from deepwell.doors.regressor import DeepGPRegressor
    from deepwell.errors import InputError
    from deepwell.fits.csv_log import CsvLog
    from deepwell.fits.events import Event
    from deepwell.fits.fit import fit
    from deepwell.fits.fitted import FittedModel, load
    from deepwell.fits.interrupt import Interrupted
    from deepwell.fits.presets import PRESETS
    from deepwell.fits.settings import Settings
    from deepwell.predict.class_probabilities import ClassProbabilities
    from deepwell.predict.count_mixture import CountMixture
    from deepwell.predict.mixture import Mixture
    from deepwell.store.tensor_file import DeepwellFileError

__version__ = "0.6.0"

answer_to_old_names()

_WHERE = {
    "ClassProbabilities": "deepwell.predict.class_probabilities",
    "CountMixture": "deepwell.predict.count_mixture",
    "CsvLog": "deepwell.fits.csv_log",
    "DeepGPClassifier": "deepwell.doors.classifier",
    "DeepGPRegressor": "deepwell.doors.regressor",
    "DeepwellFileError": "deepwell.store.tensor_file",
    "Event": "deepwell.fits.events",
    "FittedModel": "deepwell.fits.fitted",
    "InputError": "deepwell.errors",
    "Interrupted": "deepwell.fits.interrupt",
    "Mixture": "deepwell.predict.mixture",
    "PRESETS": "deepwell.fits.presets",
    "Settings": "deepwell.fits.settings",
    "compare_depths": "deepwell.assess.depths",
    "fit": "deepwell.fits.fit",
    "load": "deepwell.fits.fitted",
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
    if name in {"numerics", "data", "model", "inference", "predict", "store", "fits", "doors", "assess", "studies"}:
        return importlib.import_module(f"deepwell.{name}")
    raise AttributeError(f"module 'deepwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "data", "__version__"])
