"""``deepwell predict``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from deepwell.cli.arguments import check_output
from deepwell.cli.console import errors_in_one_sentence, on_device
from deepwell.cli.options import Device, Force, ModelFile


def predict(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet with the model's input columns.")],
    out: Annotated[Path, typer.Option(help="Where to write the predictions: .csv, .csv.gz or .parquet.")],
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Predict every row: mean, standard deviation, and 2.5 % and 97.5 % quantiles; for classes, their probabilities."""
    import pandas as pd

    from deepwell.data.tables import check_writable_kind, read_table, write_table
    from deepwell.fits.fitted import load

    with errors_in_one_sentence(), on_device(device):
        check_output(out, force)
        check_writable_kind(out)
        fitted = load(model)
        blocks = fitted.predict_blocks(read_table(table))
        frame = pd.concat([pd.DataFrame(columns_of(fitted, block)) for block in blocks])
        write_table(frame, out)
        typer.echo(f"{out}: {len(frame)} rows")


def columns_of(fitted: Any, block: Any) -> dict[str, Any]:
    """The predictions of one block of rows as columns of a table."""
    if fitted.classes is not None:
        probabilities = {f"P({label})": block.probabilities[:, i] for i, label in enumerate(fitted.classes)}
        return {"class": block.mode, **probabilities}
    lower, upper = block.interval(0.95)
    columns = {}
    for name, values in (("mean", block.mean), ("std", block.std), ("q0.025", lower), ("q0.975", upper)):
        for i, target_name in enumerate(fitted.target_names):
            label = name if len(fitted.target_names) == 1 else f"{target_name} {name}"
            columns[label] = values if fitted.single_target else values[:, i]
    return columns
