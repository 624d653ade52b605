"""Mutated files: reading any file ends in DeepwellFileError or in a model, soon and in little memory.

python tests/fuzz_files.py 10000
"""

import json
import resource
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of

import deepwell
from deepwell.store.checkpoint import BEFORE, NEWEST, Checkpoints
from deepwell.store.tensor_file import KEY, digest

SETTINGS = {"preset": "quick", "burn_in": 20, "num_samples": 4, "spacing": 2, "num_inducing": 4}
ANY_JSON = [
    None, True, False, 0, -1, 1, 2, 3, 10**6, 2**31, 10**18, 10**400, -(2**63), 0.5, 1e-300, 1e300, "", "text",
    float("inf"), float("nan"),
    "SharedTheta",
    "__import__('os').abort()", "../../etc/passwd", "a" * 10_000, [], [[]], [0], [None] * 1_000, {},
    {"class": "DeepGP"},
    {"class": "os:system"}, {"class": "deepwell:fit"}, {"class": "deepwell.model.kernels:Kernel"},
    {"tensor": "posterior.model.layers.0.inducing_inputs"}, {"tensor": "absent"}, {"class": "Sum", "kernels": []},
]  # fmt: skip
KINDS = ("truncated", "bits", "header", "sizes", "swapped", "description", "sealed description", "deep")


def parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and data of a safetensors file."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def whole(header: Any, data: bytes) -> bytes:
    """The file again."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def mutate_json(rng: np.random.Generator, value: Any) -> Any:
    """Replace, remove or duplicate a part somewhere in a JSON value."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        copy = dict(value) if isinstance(value, dict) else list(value)
        places = list(copy) if isinstance(copy, dict) else range(len(copy))
        place = places[int(rng.integers(len(places)))]
        if rng.random() < 0.1:
            copy.pop(place)
        elif rng.random() < 0.1 and isinstance(copy, list):
            copy.append(copy[place])
        else:
            copy[place] = mutate_json(rng, copy[place])
        return copy
    return ANY_JSON[int(rng.integers(len(ANY_JSON)))]


def mutated(rng: np.random.Generator, content: bytes, kind: str) -> bytes:
    """One damaged or hostile version of a file."""
    if kind == "truncated":
        return content[: int(rng.integers(len(content)))]
    if kind == "bits":
        changed = bytearray(content)
        for place in rng.integers(len(content), size=int(rng.integers(1, 20))):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    header, data = parts(content)
    names = [name for name in header if name != "__metadata__"]
    if kind == "sizes":
        return struct.pack("<Q", int(rng.choice([0, 2**20, 2**40, 2**62]))) + content[8:]
    if kind == "header":
        entry = header[names[int(rng.integers(len(names)))]]
        part = ("dtype", "shape", "data_offsets")[int(rng.integers(3))]
        absurd = {"dtype": ["F64", "I8", "BOOL", "BF16", "F8_E4M3", "X"], "shape": [[2**40], [0], [-1], [1] * 50, "x"]}
        choices = absurd.get(part, [[0, 2**50], [5, 1], [0, 0], [-8, 8], None])
        entry[part] = choices[int(rng.integers(len(choices)))]
        if rng.random() < 0.5:
            other = header[names[int(rng.integers(len(names)))]]
            entry["shape"] = other["shape"]
            return sealed(header, data)
        return whole(header, data)
    if kind == "swapped":
        a, b = rng.choice(len(names), 2, replace=False)
        header[names[a]], header[names[b]] = header[names[b]], header[names[a]]
        return sealed(header, data) if rng.random() < 0.5 else whole(header, data)
    description = json.loads(header["__metadata__"][KEY])
    if kind == "deep":
        text = "[" * int(rng.choice([100, 5_000, 200_000])) if rng.random() < 0.5 else '{"a":' * 5_000
        header["__metadata__"][KEY] = text if rng.random() < 0.5 else json.dumps(description)[:-1] + f', "b": {text}'
        return whole(header, data)
    for _ in range(int(rng.integers(1, 4))):
        description = mutate_json(rng, description)
    header["__metadata__"][KEY] = json.dumps(description)
    return sealed(header, data) if kind == "sealed description" else whole(header, data)


def sealed(header: Any, data: bytes) -> bytes:
    """The file with a digest that fits, if it can be had at all."""
    try:
        description = json.loads(header["__metadata__"][KEY])
        description.pop("digest", None)
        bare = {name: entry for name, entry in header.items() if name != "__metadata__"}
        description["digest"] = digest(description, tensors_of(whole(bare, data)))
        header["__metadata__"][KEY] = json.dumps(description)
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
        pass
    return whole(header, data)


def read_model(path: Path) -> str:
    """The outcome of reading a model file."""
    try:
        model = deepwell.load(path)
    except deepwell.DeepwellFileError:
        return "refused"
    assert model.feature_names
    return "a model"


class _Reader:
    """Reads a checkpoint, and says with which outcome."""

    def __init__(self, folder: Path) -> None:
        X = np.random.default_rng(0).standard_normal((12, 2))
        deepwell.fit(X, X[:, 0], checkpoint=folder, every=0, **SETTINGS)
        self.content = (folder / NEWEST).read_bytes()
        self.identity = json.loads(parts(self.content)[0]["__metadata__"][KEY])["identity"]
        self.folder = folder

    def read(self, path: Path) -> str:
        checkpoints = Checkpoints(path.parent, self.identity, 0.0)
        (path.parent / BEFORE).unlink(missing_ok=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                state = checkpoints.restore(lambda phase, done: True, self._template)
        except deepwell.InputError:
            return "another fit's"
        return "refused" if state is None else "a state"

    def _template(self, phase: int) -> Any:
        """The state a whole checkpoint holds, whichever the phase: reading is under test here, not the driver."""
        if phase != json.loads(parts(self.content)[0]["__metadata__"][KEY])["phase"]:
            raise deepwell.DeepwellFileError("no such phase")
        tensors = tensors_of(self.content)
        return [tensors[f"state.{i}"] for i in range(len(tensors) - 1)]


def originals(folder: Path) -> list[bytes]:
    """A model file of every kind of posterior."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    contents = []
    for inference in ("sghmc", "sghmc-bayes", "dsvi-decoupled", "bnn"):
        more = {"kernel": "se + matern32 * linear"} if inference == "sghmc" else {}
        model = deepwell.fit(X, X[:, 0], inference=inference, hidden_units=(3,), width=2, **SETTINGS, **more)
        model.save(folder / "original.deepwell")
        contents.append((folder / "original.deepwell").read_bytes())
    deepwell.fit(X, np.digitize(X[:, 0], [-0.5, 0.5]), likelihood="classes", **SETTINGS).save(folder / "c.deepwell")
    return [*contents, (folder / "c.deepwell").read_bytes()]


def study(count: int, seed: int, folder: Path) -> Counter:
    """Outcomes of ``count`` mutated files, by kind of file and mutation; every third one is a checkpoint."""
    rng = np.random.default_rng(seed)
    models, reader = originals(folder), _Reader(folder / "c")
    outcomes: Counter = Counter()
    slowest = 0.0
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        checkpoint = i % 3 == 2
        content = reader.content if checkpoint else models[int(rng.integers(len(models)))]
        path = folder / "c" / NEWEST if checkpoint else folder / "mutated.deepwell"
        path.write_bytes(mutated(rng, content, kind))
        started = time.perf_counter()
        outcome = reader.read(path) if checkpoint else read_model(path)
        slowest = max(slowest, time.perf_counter() - started)
        outcomes["checkpoint" if checkpoint else "model", kind, outcome] += 1
    outcomes["slowest, ms"] = int(1e3 * slowest)
    outcomes["peak memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return outcomes


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for line in sorted(map(str, study(int(sys.argv[1]), 0, Path(folder)).items())):
            print(line)
