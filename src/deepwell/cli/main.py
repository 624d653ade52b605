"""The command line: every command, and what comes before any of them."""

import warnings
from typing import Annotated

import typer

from deepwell import __version__
from deepwell.cli.looking import check, depths, report
from deepwell.cli.modelling import demo, evaluate, fit, predict
from deepwell.cli.reproduce import reproduce
from deepwell.store.program_cache import keep_programs

app = typer.Typer(
    help="Deep Gaussian processes whose posterior is sampled.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, fit, predict, evaluate, report, depths, check, reproduce):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point."""
    keep_programs()
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"deepwell: warning: {message}", err=True)
    app()
