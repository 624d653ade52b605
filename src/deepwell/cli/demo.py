"""``deepwell demo``."""

from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.console import errors_in_one_sentence, print_scores
from deepwell.errors import require


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture, the model and the report.")] = Path("demo"),
) -> None:
    """Fit a deep GP to data that ships with scikit-learn; print scores, draw a picture, write a report."""
    with errors_in_one_sentence():
        require("sklearn", "the demo")
        from deepwell.assess.demo import run_demo

        scores = run_demo(out)
        print_scores("diabetes, held-out rows", scores)
        typer.echo(f"picture: {out / 'deepwell.png'}\nmodel:   {out / 'diabetes.deepwell'}")
        typer.echo(f"report:  {out / 'report.html'}  (one file: open it in a browser)")
