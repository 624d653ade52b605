"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Table = Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet.")]
ModelFile = Annotated[Path, typer.Argument(help="A .deepwell file.")]
Target = Annotated[list[str], typer.Option("--target", help="Column to predict; repeat for several.")]
Depth = Annotated[int | None, typer.Option(help="Number of GP layers.")]
Preset = Annotated[str, typer.Option(help="default, best, paper or quick.")]
Task = Annotated[
    str | None,
    typer.Option(
        help="regression, classification or counts. Without it, a target of text, truth values or two values is "
        "classified, and any other is a regression."
    ),
]
Inference = Annotated[
    str | None, typer.Option(help="sghmc, sghmc-naive, mcem, sghmc-bayes, dsvi, dsvi-decoupled, bnn or nuts.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any other setting, e.g. --set burn_in=2000; repeat for several.")
]
Chains = Annotated[int | None, typer.Option(help="Number of chains.")]
Seed = Annotated[int, typer.Option(help="Random seed; the same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu or gpu.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output files.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
