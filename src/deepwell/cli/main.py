"""The command line: all commands, and what runs before each."""

import warnings
from typing import Annotated

import typer

from deepwell import __version__
from deepwell.cli.check import check
from deepwell.cli.demo import demo
from deepwell.cli.depths import depths
from deepwell.cli.evaluate import evaluate
from deepwell.cli.fit import fit
from deepwell.cli.predict import predict
from deepwell.cli.report import report
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
