"""From arguments to settings and the likelihood of a task; checks of the files to write."""

import json
from inspect import signature
from pathlib import Path
from typing import Any

import typer

from deepwell.errors import InputError

AS_IN_JSON = {"True": "true", "False": "false", "None": "null"}
LIKELIHOOD_OF_TASK = {"regression": "gaussian", "classification": "classes", "counts": "poisson"}


def read_settings(assignments: list[str] | None, **options: Any) -> dict[str, Any]:
    """Settings from NAME=VALUE assignments and from options of their own, of which None means "not given".

    A value is a number, true or True, false or False, null or None, a list, or else text.
    """
    from deepwell.fits.fit import fit

    settings = {name: value for name, value in options.items() if value is not None}
    for assignment in assignments or []:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(f"--set {assignment} must have the form NAME=VALUE")
        if name in settings:
            raise InputError(f"{name} is set twice")
        if name in signature(fit).parameters:
            raise InputError(f"--set {assignment}: {name} is not a setting; see --help for options")
        try:
            settings[name] = json.loads(AS_IN_JSON.get(text, text))
        except json.JSONDecodeError:
            settings[name] = text
    return settings


def add_likelihood(settings: dict[str, Any], task: str | None, y: Any, warm_start: bool = False) -> dict[str, Any]:
    """Settings with the likelihood of the task, or the one that y suggests; a guess is reported."""
    from deepwell.data.response import few_whole_numbers, guess_kind

    if task is not None and task not in LIKELIHOOD_OF_TASK:
        raise InputError(f"unknown task {task!r}: choose from {', '.join(LIKELIHOOD_OF_TASK)}")
    if task is not None and ("likelihood" in settings or warm_start):
        raise InputError("--task cannot be combined with --set likelihood=... or with --init, which decide the task")
    if "likelihood" in settings or warm_start:
        return settings
    if task is not None:
        return {**settings, "likelihood": LIKELIHOOD_OF_TASK[task]}
    if guess_kind(y) == "classes":
        typer.echo("deepwell: the target is treated as a class (for numbers, use --task regression)", err=True)
        return {**settings, "likelihood": LIKELIHOOD_OF_TASK["classification"]}
    if few_whole_numbers(y):
        typer.echo(
            f"deepwell: the target takes {few_whole_numbers(y)} whole numbers, treated as quantities "
            "(for classes, use --task classification)",
            err=True,
        )
    return settings


def check_output(path: Path, force: bool) -> None:
    """Refuse early what would fail, or overwrite a file, after a long fit."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: choose another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists: choose another name, or use --force to overwrite it")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist")


def check_different(*paths: Path | None) -> None:
    """Refuse two outputs that are one file."""
    outputs = [path.resolve() for path in paths if path is not None]
    for output in outputs:
        if outputs.count(output) > 1:
            raise InputError(f"{output} is named as two outputs: choose another name for one of them")
