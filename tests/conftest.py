"""Shapes and types of the core are checked at run time here; real data is found if it lies beside the project."""

import os
from pathlib import Path

from hypothesis import settings
from jaxtyping import install_import_hook

settings.register_profile("same every time", derandomize=True)
settings.load_profile("same every time")

hook = install_import_hook("deepwell.model", "beartype.beartype")
hook.__enter__()

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "DEEPWELL_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["DEEPWELL_DATA"] = str(BESIDE)
