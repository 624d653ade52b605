"""Tensor files: one safetensors file with one JSON description in its metadata, and a digest over everything.

Nothing in such a file is executed. A malformed file is rejected with ``DeepwellFileError``, in memory and time
proportional to its size.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

KEY = "deepwell"
LARGEST_DESCRIPTION = 2**24
"""Characters of JSON that are read; a model's are some thousands."""

Tensors = dict[str, np.ndarray]


class DeepwellFileError(ValueError):
    """A file that cannot be read or written."""


def write_tensor_file(
    path: Path,
    kind: str,
    version: int,
    description: dict[str, Any],
    tensors: Tensors,
    keep_old_as: Path | None = None,
) -> None:
    """Write atomically: a failure leaves whatever was at ``path`` as it was."""
    from safetensors.numpy import save as to_bytes

    description = {"kind": kind, "format": version, **description}
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    description["digest"] = digest(description, tensors)
    write_atomically(path, to_bytes(tensors, {KEY: json.dumps(description)}), keep_old_as)


def read_tensor_file(path: Path, kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], Tensors]:
    """The description and the tensors of a whole, undamaged file of this kind."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise DeepwellFileError(f"no such {kind} file: {path}")
    try:
        with safe_open(path, "numpy") as file:
            text = (file.metadata() or {})[KEY]
            if len(text) > LARGEST_DESCRIPTION:
                raise DeepwellFileError(f"{path} has a description of {len(text)} characters")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        description = dict(json.loads(text))
        expected = description.pop("digest")
        kind_in_file, version = description.get("kind", "model"), description["format"]
        damaged = expected != digest(description, tensors)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, DeepwellFileError):
            raise
        raise DeepwellFileError(f"{path} is not a deepwell {kind} file: {error}") from error
    if kind_in_file != kind:
        raise DeepwellFileError(f"{path} is not a deepwell {kind} file: it calls itself {kind_in_file!r}")
    if version not in versions or isinstance(version, bool):
        known = " and ".join(map(str, versions))
        raise DeepwellFileError(f"{path} has format {version!r}; this version of deepwell reads {known}")
    if damaged:
        raise DeepwellFileError(f"{path} is damaged: its digest does not match its contents")
    for name, array in tensors.items():
        if not is_storable(array.dtype):
            raise DeepwellFileError(f"{path} is damaged: tensor {name} holds {array.dtype}")
    return description, tensors


def is_storable(dtype: Any) -> bool:
    """Whether arrays of this type can be kept: integers and floating-point numbers of at most 64 bits."""
    return isinstance(dtype, np.dtype) and dtype.kind in "fiu" and dtype.itemsize <= 8


def digest(description: dict[str, Any], tensors: Tensors) -> str:
    """SHA-256 over the description and all tensors with their names, types and shapes."""
    state = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        state.update(f"{name}{array.dtype.str}{array.shape}".encode())
        state.update(array.tobytes())
    return state.hexdigest()


def write_atomically(path: Path, content: bytes, keep_old_as: Path | None = None) -> None:
    """Write to a temporary file beside ``path``, flush it to disk, and rename it; the old file can be kept."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            if keep_old_as is not None and path.exists():
                os.replace(path, keep_old_as)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise DeepwellFileError(f"cannot write {path}: {error.strerror}") from error
