"""What the commands share: errors in one sentence, settings from options, tasks, devices, tables of scores."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from deepwell.errors import InputError

AS_IN_JSON = {"True": "true", "False": "false", "None": "null"}
TASKS = {"regression": "gaussian", "classification": "classes", "counts": "poisson"}


@contextmanager
def plain_errors() -> Iterator[None]:
    """Bad input ends in one sentence and exit code 2, not in a traceback."""
    from deepwell.store.tensor_file import DeepwellFileError

    try:
        yield
    except (InputError, DeepwellFileError, MemoryError) as error:
        typer.echo(f"deepwell: {error}", err=True)
        raise typer.Exit(2) from None


def say_how_to_go_on(interrupted: Any, out: Path, checkpoint: Path | None) -> None:
    """Keep the model there is, and one sentence on the rest."""
    if interrupted.model is not None:
        interrupted.model.save(out)
        _, draws = interrupted.model.posterior.draws
        typer.echo(f"deepwell: interrupted; {out} holds the {draws} samples of each chain drawn so far", err=True)
    else:
        typer.echo("deepwell: interrupted before sampling began, so there is no model yet", err=True)
    force = " (with --force, to replace the model)" if interrupted.model is not None else ""
    if checkpoint is None:
        typer.echo("deepwell: next time --checkpoint FOLDER lets the same command go on from here", err=True)
    else:
        typer.echo(f"deepwell: the same command{force} goes on from the checkpoint in {checkpoint}", err=True)


OPTIONS = ("preset", "seed", "verbose", "init", "checkpoint", "every", "calibration", "classes", "callbacks", "look")
"""Arguments of a fit that are no settings."""


def chosen_settings(others: list[str] | None, **named: Any) -> dict[str, Any]:
    """Options of their own, and NAME=VALUE pairs; numbers, true or True, false or False, lists, or else text."""
    chosen = {name: value for name, value in named.items() if value is not None}
    for pair in others or []:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--set {pair} must have the form NAME=VALUE")
        if name in chosen:
            raise InputError(f"{name} is set twice")
        if name in OPTIONS:
            raise InputError(f"--set {pair}: {name} is no setting; see --help for options")
        try:
            chosen[name] = json.loads(AS_IN_JSON.get(text, text))
        except json.JSONDecodeError:
            chosen[name] = text
    return chosen


def with_task(settings: dict[str, Any], task: str | None, y: Any, started: bool = False) -> dict[str, Any]:
    """Settings with the likelihood that the task, or else the target, asks for; says so where it guesses."""
    from deepwell.data.response import are_labels, few_whole_numbers, takes_two_values

    if task is not None and task not in TASKS:
        raise InputError(f"unknown task {task!r}: choose from {', '.join(TASKS)}")
    if task is not None and ("likelihood" in settings or started):
        raise InputError("--task is decided already, by --set likelihood=... or by --init")
    if "likelihood" in settings or started:
        return settings
    if task is not None:
        return {**settings, "likelihood": TASKS[task]}
    if are_labels(y) or takes_two_values(y):
        typer.echo("deepwell: the target is a class (if not, say --task regression)", err=True)
        return {**settings, "likelihood": TASKS["classification"]}
    if few_whole_numbers(y):
        typer.echo(
            f"deepwell: the target takes {few_whole_numbers(y)} whole numbers; they are taken as amounts "
            "(if they are classes, say --task classification)",
            err=True,
        )
    return settings


def prediction_columns(fitted: Any, block: Any) -> dict[str, Any]:
    """The columns of a table of predictions for one block of rows."""
    if fitted.classes is not None:
        probabilities = {f"P({label})": block.probabilities[:, i] for i, label in enumerate(fitted.classes)}
        return {"class": block.mode, **probabilities}
    lower, upper = block.interval(0.95)
    found = {}
    for name, values in (("mean", block.mean), ("std", block.std), ("q0.025", lower), ("q0.975", upper)):
        for i, target_name in enumerate(fitted.target_names):
            label = name if len(fitted.target_names) == 1 else f"{target_name} {name}"
            found[label] = values if fitted.single_target else values[:, i]
    return found


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Whatever is computed inside runs there: auto, cpu or gpu."""
    import jax

    if name == "auto":
        yield
        return
    if name not in ("cpu", "gpu"):
        raise InputError(f"unknown device {name!r}: choose from auto, cpu, gpu")
    try:
        chosen = jax.devices(name)[0]
    except RuntimeError:
        raise InputError(f"no {name} here: JAX sees {', '.join(d.device_kind for d in jax.devices())}") from None
    with jax.default_device(chosen):
        yield


def check_output(path: Path, force: bool) -> None:
    """Refuse early what would fail, or lose a file, after a long fit."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: choose another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists: choose another name, or say --force to overwrite it")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist")


def check_different(*paths: Path | None) -> None:
    """Refuse two outputs that are one file."""
    places = [path.resolve() for path in paths if path is not None]
    for place in places:
        if places.count(place) > 1:
            raise InputError(f"{place} is named as two outputs: choose another name for one of them")


def print_scores(title: str, rows: dict[str, dict[str, Any]]) -> None:
    """A table with a row a model or split."""
    from rich.console import Console
    from rich.table import Table

    columns = [name for name in next(iter(rows.values())) if name != "split"]
    table = Table("", *[name.replace("_", " ") for name in columns], title=title)
    for name, row in rows.items():
        table.add_row(name, *[f"{row[column]:.4g}" for column in columns])
    Console(file=sys.stdout).print(table)
