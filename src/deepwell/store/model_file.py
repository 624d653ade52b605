"""Model files: the fields of a fitted model, from which ``deepwell.load`` makes it again."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deepwell.data.scaling import Scaling
from deepwell.predict.local_part import LocalRows
from deepwell.store.modules import GivenClasses, UnknownClass, decode, encode, given_classes
from deepwell.store.soundness import require_sound
from deepwell.store.tensor_file import DeepwellFileError, Tensors, read_tensor_file, write_tensor_file

KIND, FORMAT = "model", 3

PLAIN = (
    "feature_names", "named", "target_names", "single_target", "preset", "seed", "num_rows", "trace", "refused_moves",
    "refused_updates", "jitter_retries", "seconds",
)  # fmt: skip
LATER: dict[str, Any] = {"jitter_grew": (), "feature_types": (), "classes": None}
"""Plain fields that early files lack, and what they are then."""
EARLY_SETTINGS = {"likelihood": "gaussian", "control_variates": False, "local": False}
"""Settings that early files lack, as they were then."""
SCALINGS = ("x_scaling", "y_scaling")


def write_model(path: Path, fields: dict[str, Any]) -> None:
    """Write the fields of a fitted model, its settings as a dictionary.

    A failure leaves whatever was at ``path`` as it was.
    """
    from deepwell import __version__

    tensors: Tensors = {}
    description = {
        "versions": {"deepwell": __version__, "jax": jax.__version__},
        "made": {"when": datetime.now(UTC).isoformat(timespec="seconds"), "device": jax.devices()[0].device_kind},
        "posterior": encode(fields["posterior"], "posterior", tensors),
        "settings": {name: encode(value, f"settings.{name}", tensors) for name, value in fields["settings"].items()},
        **{name: fields[name] for name in (*PLAIN, *LATER)},
    }
    if fields["conformity"] is not None:
        tensors["conformity"] = fields["conformity"]
    if fields["local"] is not None:
        description["local"] = _describe_local(fields["local"], tensors)
    for name in SCALINGS:
        for part, array in fields[name]._asdict().items():
            tensors[f"{name}.{part}"] = np.asarray(array)
    write_tensor_file(path, KIND, FORMAT, description, tensors)


def read_model(path: Path, classes: Iterable[type] = ()) -> dict[str, Any]:
    """The fields of a sound model, its settings as a dictionary. ``classes`` are those from outside the package."""
    given = given_classes(classes)
    description, tensors = read_tensor_file(path, KIND, (1, 2, FORMAT))
    with rejecting_damage(path):
        if description["format"] == 1:
            description["posterior"] = _posterior_of_format_1(description["model"])
        fields = {name: _tuples(description[name]) for name in PLAIN}
        fields |= {name: _tuples(description.get(name, default)) for name, default in LATER.items()}
        for name in SCALINGS:
            fields[name] = Scaling(*(tensors.pop(f"{name}.{part}") for part in Scaling._fields))
        fields["conformity"] = tensors.pop("conformity", None)
        fields["posterior"] = decode(description["posterior"], tensors, given)
        fields["local"] = _local(description["local"], tensors, given) if "local" in description else None
        settings = {name: decode(value, tensors, given) for name, value in description["settings"].items()}
        fields["settings"] = EARLY_SETTINGS | settings
        require_sound(fields)
    return fields


def _describe_local(local: LocalRows, tensors: Tensors) -> dict[str, Any]:
    tensors["local.X"], tensors["local.y"] = local.X, local.y
    kernel = encode(local.kernel, "local.kernel", tensors)
    return {"kernel": kernel, "num_neighbours": local.num_neighbours, "gain": local.gain}


def _local(description: dict[str, Any], tensors: Tensors, given: GivenClasses) -> LocalRows:
    kernel = decode(description["kernel"], tensors, given)
    rows = tensors.pop("local.X"), tensors.pop("local.y")
    return LocalRows(kernel, *rows, description["num_neighbours"], description["gain"])


@contextmanager
def rejecting_damage(path: Path) -> Iterator[None]:
    """Whatever fails in the block, the file is to blame: a hostile one can make anything fail."""
    try:
        yield
    except UnknownClass as error:
        raise DeepwellFileError(f"{path} needs {error}") from None
    except Exception as error:
        raise DeepwellFileError(f"{path} is damaged: {error!r:.300}") from error


def _posterior_of_format_1(model: dict[str, Any]) -> dict[str, Any]:
    """Format 1 had one kind of posterior, and kept its parts apart."""
    depth = len(model["layers"])
    return {
        "class": "SharedTheta",
        "model": model,
        "samples": [{"tensor": f"samples.{i}"} for i in range(depth)],
        "noise": [{"tensor": f"noise.{i}"} for i in range(depth - 1)],
    }


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
