"""``deepwell depths``."""

from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.arguments import add_likelihood, check_output, read_settings
from deepwell.cli.console import errors_in_one_sentence, on_device, print_scores
from deepwell.cli.options import Chains, Device, Force, Inference, Preset, Quiet, Seed, Set, Table, Target, Task
from deepwell.errors import InputError


def depths(
    table: Table,
    target: Target,
    tried: Annotated[
        list[int] | None, typer.Option("--depth", help="A depth to try; repeat for several. [1 to 4]")
    ] = None,
    by: Annotated[
        str,
        typer.Option(help="validation: score rows held out of the fits; loo: PSIS leave-one-out, which needs ArviZ."),
    ] = "validation",
    task: Task = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    assignments: Set = None,
    seed: Seed = 0,
    device: Device = "auto",
    picture: Annotated[Path | None, typer.Option(help="Also draw the comparison: .png, .svg or .pdf.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Does depth help on this table? Fit each depth and compare the log density of the same rows."""
    from deepwell.assess.depths import compare_depths, draw_comparison
    from deepwell.data.tables import read_table, split_target

    with errors_in_one_sentence(), on_device(device):
        if picture is not None:
            check_output(picture, force)
            if picture.suffix not in (".png", ".svg", ".pdf"):
                raise InputError(f"--picture {picture}: choose a name that ends in .png, .svg or .pdf")
        X, y = split_target(read_table(table), target)
        settings = add_likelihood(read_settings(assignments, inference=inference, num_chains=chains), task, y)
        comparison = compare_depths(
            X, y, tried or (1, 2, 3, 4), by=by, seed=seed, preset=preset, verbose=not quiet, **settings
        )
        print_scores(f"{table.name}, log density per row", comparison.rows())
        typer.echo(comparison)
        if picture is not None:
            draw_comparison(comparison, picture)
            typer.echo(f"picture: {picture}")
