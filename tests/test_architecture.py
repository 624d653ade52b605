"""Rooms import only rooms above them; importing the package is light; what the documents show runs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "deepwell"
ROOMS = [
    "_renamed", "errors", "numerics", "data", "model", "inference", "predict", "store", "fits", "doors", "assess",
    "studies", "cli", "__main__",
]  # fmt: skip
HEAVY = {"optax", "scipy", "pandas", "sklearn", "matplotlib", "rich", "typer", "safetensors"}


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "deepwell" else [f"deepwell.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "deepwell" and len(parts) > 1 and parts[1] in ROOMS:
                yield parts[1]


def test_rooms_import_only_rooms_above_them():
    seen = 0
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in imported_rooms(path):
            seen += 1
            assert ROOMS.index(other) <= ROOMS.index(room), f"{path} imports {other}"
    assert seen > 30


def test_importing_deepwell_is_light():
    code = "import sys, jax; before = set(sys.modules); import deepwell; print(*(set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    new = {name.split(".")[0] for name in output.split()}
    assert not new & HEAVY


def test_the_core_fits_without_sklearn_matplotlib_arviz_and_blackjax():
    code = (
        "import sys\n"
        "for name in ('sklearn', 'matplotlib', 'arviz', 'blackjax'): sys.modules[name] = None\n"
        "import numpy as np, deepwell, deepwell.cli.main\n"
        "X = np.random.default_rng(0).standard_normal((30, 2))\n"
        "m = deepwell.fit(X, X[:, 0], preset='quick', depth=1, burn_in=20)\n"
        "assert np.all(np.isfinite(m.predict(X)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(code, id=f"{path.name}-{i}")
    for path in DOCUMENTS
    if path.exists()
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.S))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_code_in_the_documents_runs(code, tmp_path, monkeypatch):
    assert len(BLOCKS) >= 1
    monkeypatch.chdir(tmp_path)
    from deepwell.fits import presets

    monkeypatch.setitem(presets.PRESETS, "default", presets.PRESETS["quick"])
    exec(compile(code, "document", "exec"), {})


def anchors(path):
    """Of the headings, as GitHub names them: small letters, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_documents_lead_somewhere():
    assert "beside-its-peers" in anchors(ROOT / "docs" / "performance.md")
    for path in DOCUMENTS:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", path.read_text()):
            if "://" not in target:
                there = path.parent / target if target else path
                assert there.exists(), f"{path.name} links to {target}"
                assert not anchor or anchor in anchors(there), f"{path.name} links to {target}#{anchor}"
