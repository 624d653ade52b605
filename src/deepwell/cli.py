"""The command line: ``deepwell fit``, ``predict``, ``evaluate``, ``depths``, ``report``, ``check`` and others."""

import json
import os
import warnings
from pathlib import Path
from typing import Annotated

import typer

from deepwell import __version__
from deepwell.data.errors import InputError
from deepwell.interfaces.console import (
    check_output,
    chosen_settings,
    on_device,
    plain_errors,
    prediction_columns,
    print_scores,
    say_how_to_go_on,
    with_task,
)
from deepwell.interfaces.program_cache import keep_programs
from deepwell.reproduce import reproduce

app = typer.Typer(
    help="Deep Gaussian processes whose posterior is sampled.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(reproduce)

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


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture, the model and the report.")] = Path("demo"),
) -> None:
    """Fit a deep GP to data that ships with scikit-learn, print the scores, draw a picture, write a report."""
    from deepwell.interfaces.demo import run_demo

    with plain_errors():
        result = run_demo(out)
        print_scores("diabetes, held-out rows", result)
        typer.echo(f"picture: {out / 'deepwell.png'}\nmodel:   {out / 'diabetes.deepwell'}")
        typer.echo(f"report:  {out / 'report.html'}  (one file: open it in a browser)")


@app.command()
def fit(
    table: Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet.")],
    target: Target,
    out: Annotated[Path, typer.Option(help="Where to write the model.")],
    task: Task = None,
    depth: Depth = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    others: Set = None,
    init: Annotated[Path | None, typer.Option(help="A .deepwell file to start from, of any method.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints; the same command goes on from the newest.")
    ] = None,
    every: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 60.0,
    report: Annotated[
        Path | None, typer.Option(help="Keep 20 % of the rows out of the fit and write a page (.html) that judges it.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Write the course of the fit as CSV, a line a chunk.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="On a GPU: slower kernels that give the same bits every time.")
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and save it."""
    from deepwell.data.splits import split_rows
    from deepwell.data.tables import read_table, split_target
    from deepwell.interfaces.callbacks import CsvLog
    from deepwell.interfaces.checkpoints import has_checkpoint
    from deepwell.interfaces.files import load
    from deepwell.interfaces.fitting import fit as fit_model
    from deepwell.interfaces.interrupting import Interrupted
    from deepwell.interfaces.report import Held, write_report

    if deterministic:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_deterministic_ops=true".strip()
    with plain_errors(), on_device(device):
        check_output(out, force)
        if report is not None:
            check_output(report, force)
        if log is not None:
            check_output(log, force or has_checkpoint(checkpoint))  # a resumed fit goes on in its log
        X, y = split_target(read_table(table), target)
        settings = chosen_settings(others, depth=depth, inference=inference, num_chains=chains)
        train, test = split_rows(len(X), split=0, seed=seed) if report is not None else (slice(None), slice(0))
        known = y if len(target) > 1 else y.iloc[:, 0]
        try:
            model = fit_model(
                X.iloc[train], known.iloc[train], preset=preset, seed=seed, verbose=not quiet,
                init=None if init is None else load(init), checkpoint=checkpoint, every=every,
                callbacks=[] if log is None else [CsvLog(log)],
                **with_task(settings, task, y, init is not None),
            )  # fmt: skip
        except Interrupted as interrupted:
            say_how_to_go_on(interrupted, out, checkpoint)
            raise typer.Exit(128 + interrupted.signal) from None
        model.save(out)
        chains, draws = model.posterior.draws
        typer.echo(
            f"{out}: {model.num_rows} rows, {len(model.feature_names)} inputs, {model.settings.depth} layers, "
            f"{chains * draws} posterior samples, {model.seconds:.1f} s, "
            f"training log-likelihood {model.trace[-1][1]:.3f}"
        )
        if model.troubles():
            typer.echo(f"troubles: {model.troubles()}")
        if report is not None:
            training = X.iloc[train].to_numpy(float), known.iloc[train].to_numpy()
            write_report(model, report, Held(X.iloc[test], known.iloc[test].to_numpy(), training), out.name)
            typer.echo(f"report: {report}")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A .deepwell file.")],
    table: Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet with the model's input columns.")],
    out: Annotated[Path, typer.Option(help="Where to write the predictions: .csv, .csv.gz or .parquet.")],
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Predict: mean, std, and the 2.5 % and 97.5 % quantiles of every row; of classes, their probabilities."""
    import pandas as pd

    from deepwell.data.tables import check_writable_kind, read_table, write_table
    from deepwell.interfaces.files import load

    with plain_errors(), on_device(device):
        check_output(out, force)
        check_writable_kind(out)
        fitted = load(model)
        inputs = read_table(table)
        frame = pd.concat([pd.DataFrame(prediction_columns(fitted, block)) for block in fitted.predict_blocks(inputs)])
        write_table(frame, out)
        typer.echo(f"{out}: {len(frame)} rows")


@app.command()
def evaluate(
    table: Annotated[Path, typer.Argument(help="CSV, gzipped CSV or Parquet.")],
    target: Target,
    splits: Annotated[int, typer.Option(help="How many train-test splits, numbered from 0.")] = 3,
    first_split: Annotated[int, typer.Option(help="Number of the first split.")] = 0,
    test_size: Annotated[float, typer.Option(help="Share of the rows to test on.")] = 0.2,
    task: Task = None,
    depth: Depth = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    others: Set = None,
    seed: Seed = 0,
    device: Device = "auto",
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the scores as JSON.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit and score on repeated train-test splits, in the units of the target."""
    from deepwell.data.tables import read_table, split_target
    from deepwell.experiments.evaluate import evaluate as evaluate_splits
    from deepwell.interfaces.containers import write_atomically

    with plain_errors(), on_device(device):
        if json_file is not None:
            check_output(json_file, force)
        if splits < 1 or first_split < 0:
            raise InputError(f"--splits {splits} --first-split {first_split}: there must be at least one split")
        X, y = split_target(read_table(table), target)
        settings = chosen_settings(others, depth=depth, inference=inference, num_chains=chains)
        result = evaluate_splits(
            X, y, range(first_split, first_split + splits), seed=seed, test_size=test_size, preset=preset,
            verbose=not quiet, **with_task(settings, task, y),
        )  # fmt: skip
        named = {f"split {row['split']}": row for row in result["splits"]} | {"mean": result["mean"]}
        print_scores(f"{table.name}, {int(100 * test_size)} % held out", named)
        if json_file is not None:
            write_atomically(json_file, json.dumps(result, indent=1).encode())


@app.command()
def check(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("check"),
    thorough: Annotated[bool, typer.Option("--thorough", help="Four times the chains and replications.")] = False,
    double: Annotated[bool, typer.Option("--double", help="In double precision.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Is the sampler right on this machine? Exact laws, simulated truths, NUTS; exit code 1 if a part fails."""
    import jax

    from deepwell.experiments.check import run_check

    with plain_errors(), on_device(device), jax.enable_x64(double):
        checked = run_check(out, seed, thorough, typer.echo)
        typer.echo(f"{checked.verdict}, {checked.seconds:.0f} s; picture: {out / 'check.png'}")
        if not checked.passed:
            raise typer.Exit(1)


@app.command()
def report(
    model: Annotated[Path, typer.Argument(help="A .deepwell file.")],
    data: Annotated[Path | None, typer.Option(help="A table of rows not seen in the fit, target included.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Write one self-contained page on a fitted model: scores, calibration, convergence, what it learned."""
    from deepwell.data.tables import read_table, split_target
    from deepwell.interfaces.files import load
    from deepwell.interfaces.report import Held, write_report

    with plain_errors(), on_device(device):
        check_output(out, force)
        fitted = load(model)
        held = None
        if data is not None:
            X, y = split_target(read_table(data), fitted.target_names)
            held = Held(X, (y.iloc[:, 0] if fitted.single_target or fitted.classes else y).to_numpy())
        write_report(fitted, out, held, model.name)
        typer.echo(f"report: {out}")


@app.command()
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
    from deepwell.data.tables import read_table, split_target
    from deepwell.experiments.depths import compare_depths, draw_comparison

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


def main() -> None:
    """Entry point."""
    keep_programs()
    warnings.showwarning = lambda message, *_, **__: typer.echo(f"deepwell: warning: {message}", err=True)
    app()
