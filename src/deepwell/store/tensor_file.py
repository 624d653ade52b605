"""Files of numbers: one safetensors file with one JSON string in its metadata, and a digest over everything.

Nothing in such a file is executed. Whatever is wrong with it ends in ``DeepwellFileError``, in memory and time
proportional to the file's size.
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


def write_container(
    path: Path,
    kind: str,
    version: int,
    described: dict[str, Any],
    tensors: Tensors,
    keep_old_as: Path | None = None,
) -> None:
    """Write atomically: a failure leaves whatever was at ``path`` as it was."""
    from safetensors.numpy import save as to_bytes

    described = {"kind": kind, "format": version, **described}
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    described["digest"] = digest(described, tensors)
    write_atomically(path, to_bytes(tensors, {KEY: json.dumps(described)}), keep_old_as)


def read_container(path: Path, kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], Tensors]:
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
        described = dict(json.loads(text))
        expected = described.pop("digest")
        found_kind, version = described.get("kind", "model"), described["format"]
        damaged = expected != digest(described, tensors)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, DeepwellFileError):
            raise
        raise DeepwellFileError(f"{path} is not a deepwell {kind} file: {error}") from error
    if found_kind != kind:
        raise DeepwellFileError(f"{path} is not a deepwell {kind} file: it calls itself {found_kind!r}")
    if version not in versions or isinstance(version, bool):
        known = " and ".join(map(str, versions))
        raise DeepwellFileError(f"{path} has format {version!r}, and this version of deepwell reads {known}")
    if damaged:
        raise DeepwellFileError(f"{path} is damaged: its digest does not match its contents")
    for name, array in tensors.items():
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
            raise DeepwellFileError(f"{path} is damaged: tensor {name} holds {array.dtype}")
    return described, tensors


def digest(described: dict[str, Any], tensors: Tensors) -> str:
    """SHA-256 over the description and all tensors with their names, types and shapes."""
    found = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        found.update(f"{name}{array.dtype.str}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


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
