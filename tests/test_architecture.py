"""Rooms import only rooms above them, without cycles; old names work; documents are in form, and their code runs."""

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

from deepwell._renamed import RENAMED

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "deepwell"
ROOMS = [
    "_renamed", "errors", "numerics", "data", "model", "inference", "predict", "store", "fits", "doors", "assess",
    "studies", "cli", "__main__",
]  # fmt: skip
HEAVY = {"optax", "scipy", "pandas", "sklearn", "matplotlib", "rich", "typer", "safetensors"}


MODULES = {
    ".".join(("deepwell", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def imported_modules(tree):
    """Modules of this package that a syntax tree imports, in functions too, but not those imported for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from (name for branch in node.orelse for name in imported_modules(branch))
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in submodules)
        yield from imported_modules(node)


IMPORTS = {name: set(imported_modules(ast.parse(path.read_text()))) for name, path in MODULES.items()}


def room(module):
    return module.split(".")[1] if "." in module else ""


def test_the_imports_are_read_where_they_stand():
    tree = ast.parse(
        "import deepwell.errors\n"
        "def f():\n    from deepwell.numerics import jit\n    from deepwell.store.locks import locked\n"
        "if TYPE_CHECKING:\n    from deepwell.fits import fit\n"
        "from deepwell import InputError\n"
    )
    assert set(imported_modules(tree)) == {
        "deepwell.errors",
        "deepwell.numerics.jit",
        "deepwell.store.locks",
        "deepwell",
    }
    assert sum(map(len, IMPORTS.values())) > 300
    assert {room(module) for module in MODULES} == {"", *ROOMS}


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"deepwell"}))
def test_rooms_import_only_rooms_above_them(module):
    above = {"", *ROOMS[: ROOMS.index(room(module)) + 1]}
    assert not [other for other in IMPORTS[module] if room(other) not in above]


@pytest.mark.parametrize("name", ROOMS)
def test_no_import_cycle_inside_a_room(name):
    inside = {
        m: {other for other in IMPORTS[m] if room(other) == name and other != m} for m in MODULES if room(m) == name
    }
    graphlib.TopologicalSorter(inside).prepare()  # raises CycleError


def test_annotations_are_checked_and_dtypes_promoted_strictly():
    from deepwell.data.scaling import fit_scaling
    from deepwell.numerics.linalg import inverse_cholesky

    with pytest.raises(TypeCheckError, match="'K'"):
        inverse_cholesky(jnp.ones((2, 3)), 1e-6)
    with pytest.raises(TypeCheckError, match=r"parameters of deepwell\.data\.scaling"):
        fit_scaling("text")
    with pytest.raises(jax.dtypes.TypePromotionError):
        jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)
    code = "import jax; print(jax.config.jax_numpy_dtype_promotion)"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert started.stdout == "strict\n"


def test_importing_deepwell_is_light():
    code = "import sys, jax; before = set(sys.modules); import deepwell; print(*(set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    new = {name.split(".")[0] for name in output.split()}
    assert not new & HEAVY


def test_the_core_fits_without_packages_that_machines_with_a_gpu_lack():
    code = (
        "import sys\n"
        "for name in ('sklearn', 'matplotlib', 'jinja2', 'arviz', 'blackjax'): sys.modules[name] = None\n"
        "import numpy as np, deepwell, deepwell.cli.main\n"
        "X = np.random.default_rng(0).standard_normal((30, 2))\n"
        "m = deepwell.fit(X, X[:, 0], preset='quick', depth=1, burn_in=20)\n"
        "assert np.all(np.isfinite(m.predict(X)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_names_of_modules_give_the_new_module_and_a_warning(old, new, monkeypatch):
    assert new in MODULES
    assert old not in MODULES
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(FutureWarning, match=f"^{re.escape(old)} is now {re.escape(new)};"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert module.__name__ == new


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


def prose(path):
    """Numbered lines outside code blocks and tables, which cannot be broken."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if not in_code and not line.lstrip().startswith("|"):
            yield number, line


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_lines_of_documents_are_at_most_120_characters_long(path):
    assert [(number, len(line)) for number, line in prose(path) if len(line) > 120] == []


def anchors(path):
    """Of the headings, as GitHub names them: small letters, no punctuation, hyphens for spaces. Of code, its lines."""
    if path.suffix == ".py":
        return {f"L{number}" for number, _ in enumerate(path.read_text().splitlines(), 1)}
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_documents_lead_somewhere():
    assert "beside-its-peers" in anchors(ROOT / "docs" / "performance.md")
    for path in DOCUMENTS:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", path.read_text()):
            if "://" not in target:
                there = path.parent / target if target else path
                assert there.exists(), f"{path.name} links to {target}"
                is_heading = anchor and there.suffix == ".md"
                assert not is_heading or anchor in anchors(there), f"{path.name} links to {target}#{anchor}"
