"""What commands share while they run: errors in one sentence, the device, tables of scores."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from deepwell.errors import InputError


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Bad input ends with one sentence and exit code 2, without a traceback."""
    from deepwell.store.tensor_file import DeepwellFileError

    try:
        yield
    except (InputError, DeepwellFileError, MemoryError) as error:
        typer.echo(f"deepwell: {error}", err=True)
        raise typer.Exit(2) from None


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Compute inside the block on this device: auto, cpu or gpu."""
    import jax

    if name == "auto":
        yield
        return
    if name not in ("cpu", "gpu"):
        raise InputError(f"unknown device {name!r}: choose from auto, cpu, gpu")
    try:
        device = jax.devices(name)[0]
    except RuntimeError:
        kinds = ", ".join(device.device_kind for device in jax.devices())
        raise InputError(f"there is no {name} here: JAX sees {kinds}") from None
    with jax.default_device(device):
        yield


def print_scores(title: str, rows: dict[str, dict[str, Any]]) -> None:
    """A table with one row per model or split."""
    from rich.console import Console
    from rich.table import Table

    columns = [name for name in next(iter(rows.values())) if name != "split"]
    table = Table("", *[name.replace("_", " ") for name in columns], title=title)
    for name, row in rows.items():
        table.add_row(name, *[f"{row[column]:.4g}" for column in columns])
    Console(file=sys.stdout).print(table)
