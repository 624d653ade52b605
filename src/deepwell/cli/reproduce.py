"""``deepwell reproduce``."""

import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.arguments import read_settings
from deepwell.cli.console import errors_in_one_sentence, on_device
from deepwell.cli.options import Device, Quiet, Seed, Set
from deepwell.errors import InputError

ALL = "all"
LONGEST_RANGE = 10_000


def reproduce(
    study: Annotated[str, typer.Argument(help="toy, cep, mcem, runtime, mnist, gaussianity, uci or all.")],
    out: Annotated[Path | None, typer.Option(help="Folder for rows, tables and figures. Default: results.")] = None,
    datasets: Annotated[list[str] | None, typer.Option(help="Sets to run, e.g. boston,energy.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Methods by the paper's names, e.g. 'SGP,SGHMC DGP'.")
    ] = None,
    depths: Annotated[list[str] | None, typer.Option(help="Numbers of layers, e.g. 2,3 or 2-5.")] = None,
    splits: Annotated[list[str] | None, typer.Option(help="Splits, e.g. 0-4.")] = None,
    preset: Annotated[str | None, typer.Option(help="Default: paper; for mnist, cep and toy: default.")] = None,
    assignments: Set = None,
    group_size: Annotated[
        int | None, typer.Option(help="Splits that run as one program. Default: 10 on a GPU, 1 on a CPU.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Seconds between checkpoints. Default: 60.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny, on made-up data: does it run?")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Run a study of the paper: rows, a table of our scores beside the paper's, and a figure.

    Existing rows are not run again, a killed run resumes, and several processes may share a folder.
    """
    from deepwell.fits.prepare import checked_seed
    from deepwell.store.tensor_file import DeepwellFileError
    from deepwell.studies.options import StudyOptions
    from deepwell.studies.registry import STUDIES

    with errors_in_one_sentence(), on_device(device):
        if study != ALL and study not in STUDIES:
            raise InputError(f"unknown study {study!r}: choose from {', '.join((*STUDIES, ALL))}")
        selection = {"datasets": datasets, "methods": methods, "depths": depths, "splits": splits}
        for name, value in {**selection, "group_size": group_size, "every": every}.items():
            option = f"--{name.replace('_', '-')}"
            if value is not None and study == ALL and name in selection:
                raise InputError(f"{option} is for one study, not for all of them")
            if value is not None and study != ALL and name not in STUDIES[study].takes:
                raise InputError(f"{option} does not apply to the study {study}")
        if group_size is not None and group_size < 1:
            raise InputError(f"--group-size {group_size} must be at least 1")
        if every is not None and not every >= 0.0:
            raise InputError(f"--every {every} must be a number of seconds, 0 or more")
        options = StudyOptions(
            folder=out or (Path("results") / "smoke" if smoke else Path("results")),
            datasets=_words("--datasets", datasets), methods=_words("--methods", methods),
            depths=_numbers("--depths", depths, 1), splits=_numbers("--splits", splits), preset=preset,
            seed=checked_seed(seed), group_size=group_size, every=every, smoke=smoke,
            verbose=sys.stderr.isatty() and not quiet, settings=read_settings(assignments),
            tell=(lambda line: None) if quiet else typer.echo,
        )  # fmt: skip
        failed: dict[str, list[str]] = {}
        for name in STUDIES if study == ALL else [study]:
            try:
                STUDIES[name].run(options)
            except KeyboardInterrupt as interrupted:
                typer.echo("deepwell: interrupted; the same command resumes from here", err=True)
                raise typer.Exit(128 + getattr(interrupted, "signal", signal.SIGINT)) from None
            except Exception as error:
                if study != ALL:
                    raise
                if not isinstance(error, InputError | DeepwellFileError | MemoryError):
                    traceback.print_exc()
                failed.setdefault(str(error) or type(error).__name__, []).append(name)
        if failed:
            raise InputError("; ".join(f"{', '.join(names)}: {message}" for message, names in failed.items()))
        typer.echo(f"rows, tables and figures: {options.folder}")


def _words(option: str, values: Sequence[str] | None) -> list[str] | None:
    """The values of an option that is repeated, or given once with commas."""
    words = [word.strip() for value in values or () for word in value.split(",")]
    if not all(words):
        raise InputError(f"{option} {','.join(values or ())} has an empty entry before, after or between commas")
    return words or None


def _numbers(option: str, values: Sequence[str] | None, least: int = 0) -> list[int] | None:
    """Numbers and ranges: 0-4,7."""
    numbers: set[int] = set()
    for word in _words(option, values) or []:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        span = range(int(match[1]), int(match[2] or match[1]) + 1) if match and len(word) < 20 else ()
        if not span:
            raise InputError(f"{option} {word} must be a number or a range from low to high, such as 3 or 0-9")
        if span[0] < least or len(span) > LONGEST_RANGE:
            raise InputError(
                f"{option} {word} must be {least} or more, and a range must have at most {LONGEST_RANGE:,} numbers"
            )
        numbers.update(span)
    return sorted(numbers) or None
