"""``deepwell report``."""

from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.arguments import check_output
from deepwell.cli.console import errors_in_one_sentence, on_device
from deepwell.cli.options import Device, Force, ModelFile


def report(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Option(help="A table of rows that the fit has not seen, with the target.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Write a self-contained page about a fitted model: scores, calibration, convergence, what it learned."""
    from deepwell.assess.report import HeldOut, write_report
    from deepwell.data.tables import read_table, split_target
    from deepwell.fits.fitted import load

    with errors_in_one_sentence(), on_device(device):
        check_output(out, force)
        fitted = load(model)
        held_out = None
        if data is not None:
            X, y = split_target(read_table(data), fitted.target_names)
            held_out = HeldOut(X, (y.iloc[:, 0] if fitted.single_target or fitted.classes else y).to_numpy())
        write_report(fitted, out, held_out, model.name)
        typer.echo(f"report: {out}")
