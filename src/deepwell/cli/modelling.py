"""Make a model, use it, score it: ``demo``, ``fit``, ``predict``, ``evaluate``."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.console import (
    check_different,
    check_output,
    chosen_settings,
    on_device,
    plain_errors,
    prediction_columns,
    print_scores,
    say_how_to_go_on,
    with_task,
)
from deepwell.cli.options import Chains, Depth, Device, Force, Inference, Preset, Quiet, Seed, Set, Target, Task
from deepwell.errors import InputError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture, the model and the report.")] = Path("demo"),
) -> None:
    """Fit a deep GP to data that ships with scikit-learn, print the scores, draw a picture, write a report."""
    from deepwell.assess.demo import run_demo

    with plain_errors():
        result = run_demo(out)
        print_scores("diabetes, held-out rows", result)
        typer.echo(f"picture: {out / 'deepwell.png'}\nmodel:   {out / 'diabetes.deepwell'}")
        typer.echo(f"report:  {out / 'report.html'}  (one file: open it in a browser)")


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
    from deepwell.assess.report import Held, write_report
    from deepwell.data.splits import split_rows
    from deepwell.data.tables import read_table, split_target
    from deepwell.fits.events import CsvLog
    from deepwell.fits.fit import fit as fit_model
    from deepwell.fits.fitted import load
    from deepwell.fits.interrupt import Interrupted
    from deepwell.store.checkpoint import has_checkpoint

    if deterministic:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_deterministic_ops=true".strip()
    with plain_errors(), on_device(device):
        check_different(out, report, log)
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
                callbacks=[] if log is None else [CsvLog(log, checkpoint)],
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
    from deepwell.fits.fitted import load

    with plain_errors(), on_device(device):
        check_output(out, force)
        check_writable_kind(out)
        fitted = load(model)
        inputs = read_table(table)
        frame = pd.concat([pd.DataFrame(prediction_columns(fitted, block)) for block in fitted.predict_blocks(inputs)])
        write_table(frame, out)
        typer.echo(f"{out}: {len(frame)} rows")


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
    from deepwell.assess.evaluate import evaluate as evaluate_splits
    from deepwell.data.tables import read_table, split_target
    from deepwell.store.tensor_file import write_atomically

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
