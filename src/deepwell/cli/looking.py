"""Look at what was made: ``report``, ``depths``, ``check``."""

from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.console import check_output, chosen_settings, on_device, plain_errors, print_scores, with_task
from deepwell.cli.options import Chains, Device, Force, Inference, Preset, Quiet, Seed, Set, Target, Task
from deepwell.errors import InputError


def report(
    model: Annotated[Path, typer.Argument(help="A .deepwell file.")],
    data: Annotated[Path | None, typer.Option(help="A table of rows not seen in the fit, target included.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Write one self-contained page on a fitted model: scores, calibration, convergence, what it learned."""
    from deepwell.assess.report import Held, write_report
    from deepwell.data.tables import read_table, split_target
    from deepwell.fits.fitted import load

    with plain_errors(), on_device(device):
        check_output(out, force)
        fitted = load(model)
        held = None
        if data is not None:
            X, y = split_target(read_table(data), fitted.target_names)
            held = Held(X, (y.iloc[:, 0] if fitted.single_target or fitted.classes else y).to_numpy())
        write_report(fitted, out, held, model.name)
        typer.echo(f"report: {out}")


def depths(
    table: Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet.")],
    target: Target,
    tried: Annotated[
        list[int] | None, typer.Option("--depth", help="A depth to try; repeat for several. [1 to 4]")
    ] = None,
    by: Annotated[
        str, typer.Option(help="validation: rows kept out once; loo: PSIS leave-one-out, by ArviZ.")
    ] = "validation",
    task: Task = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    others: Set = None,
    seed: Seed = 0,
    device: Device = "auto",
    picture: Annotated[Path | None, typer.Option(help="Also draw the comparison: .png, .svg or .pdf.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Does depth help on this table? Fits each depth and compares the log density of the same rows."""
    from deepwell.assess.depths import compare_depths, draw_comparison
    from deepwell.data.tables import read_table, split_target

    with plain_errors(), on_device(device):
        if picture is not None:
            check_output(picture, force)
            if picture.suffix not in (".png", ".svg", ".pdf"):
                raise InputError(f"--picture {picture}: choose a name that ends in .png, .svg or .pdf")
        X, y = split_target(read_table(table), target)
        settings = with_task(chosen_settings(others, inference=inference, num_chains=chains), task, y)
        found = compare_depths(
            X, y, tried or (1, 2, 3, 4), by=by, seed=seed, preset=preset, verbose=not quiet, **settings
        )
        print_scores(f"{table.name}, log density a row", found.rows())
        typer.echo(found)
        if picture is not None:
            draw_comparison(found, picture)
            typer.echo(f"picture: {picture}")


def check(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("check"),
    thorough: Annotated[bool, typer.Option("--thorough", help="Four times the chains and replications.")] = False,
    double: Annotated[bool, typer.Option("--double", help="In double precision.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Is the sampler right on this machine? Exact laws, simulated truths, NUTS; exit code 1 if a part fails."""
    import jax

    from deepwell.assess.check import run_check

    with plain_errors(), on_device(device), jax.enable_x64(double):
        checked = run_check(out, seed, thorough, typer.echo)
        typer.echo(f"{checked.verdict}, {checked.seconds:.0f} s; picture: {out / 'check.png'}")
        if not checked.passed:
            raise typer.Exit(1)
