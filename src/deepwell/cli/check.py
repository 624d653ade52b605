"""``deepwell check``."""

from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.console import errors_in_one_sentence, on_device
from deepwell.cli.options import Device, Seed


def check(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("check"),
    thorough: Annotated[bool, typer.Option("--thorough", help="Four times the chains and replications.")] = False,
    double: Annotated[bool, typer.Option("--double", help="Compute in double precision.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Is the sampler right on this machine? Exact laws, simulated truths, NUTS; exit code 1 if a part fails."""
    import jax

    from deepwell.assess.check.run import run_check

    with errors_in_one_sentence(), on_device(device), jax.enable_x64(double):
        result = run_check(out, seed, thorough, typer.echo)
        typer.echo(f"{result.verdict}, {result.seconds:.0f} s; picture: {out / 'check.png'}")
        if not result.passed:
            raise typer.Exit(1)
