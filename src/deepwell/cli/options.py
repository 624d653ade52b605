"""Options that several commands share."""

from typing import Annotated

import typer

Target = Annotated[list[str], typer.Option("--target", help="Column to predict; repeat for several.")]
Depth = Annotated[int | None, typer.Option(help="Number of GP layers.")]
Preset = Annotated[str, typer.Option(help="default, best, paper or quick.")]
Task = Annotated[
    str | None,
    typer.Option(help="regression, classification or counts; text, truth values and two values mean classification."),
]
Inference = Annotated[
    str | None, typer.Option(help="sghmc, sghmc-naive, mcem, sghmc-bayes, dsvi, dsvi-decoupled, bnn or nuts.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any other setting, e.g. --set burn_in=2000; repeat for several.")
]
Chains = Annotated[int | None, typer.Option(help="Number of chains.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu or gpu.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing output file.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
