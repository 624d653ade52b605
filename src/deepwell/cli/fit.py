"""``deepwell fit``."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from deepwell.cli.arguments import add_likelihood, check_different, check_output, read_settings
from deepwell.cli.console import errors_in_one_sentence, on_device
from deepwell.cli.options import Chains, Depth, Device, Force, Inference, Preset, Quiet, Seed, Set, Table, Target, Task


def fit(
    table: Table,
    target: Target,
    out: Annotated[Path, typer.Option(help="Where to write the model.")],
    task: Task = None,
    depth: Depth = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    assignments: Set = None,
    init: Annotated[Path | None, typer.Option(help="A .deepwell file to start from, fitted by any method.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints; the same command continues from the newest.")
    ] = None,
    every: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 60.0,
    report: Annotated[
        Path | None,
        typer.Option(help="Hold out 20 % of the rows and write a report (.html) that judges the fit on them."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Write the progress of the fit as CSV, one line per chunk of iterations.")
    ] = None,
    without_training_rows: Annotated[
        bool,
        typer.Option(
            "--without-training-rows", help="Leave the local part, and with it the training rows, out of the file."
        ),
    ] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="On a GPU, use slower kernels that give the same bits every time.")
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and save it."""
    from deepwell.assess.report import HeldOut, require_packages, write_report
    from deepwell.data.splits import split_rows
    from deepwell.data.tables import read_table, split_target
    from deepwell.fits.csv_log import CsvLog
    from deepwell.fits.fit import fit as fit_model
    from deepwell.fits.fitted import load
    from deepwell.fits.interrupt import Interrupted
    from deepwell.store.checkpoint import has_checkpoint

    if deterministic:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_deterministic_ops=true".strip()
    with errors_in_one_sentence(), on_device(device):
        check_different(out, report, log)
        check_output(out, force)
        if report is not None:
            require_packages()
            check_output(report, force)
        if log is not None:
            check_output(log, force or has_checkpoint(checkpoint))  # a resumed fit continues its log
        X, y = split_target(read_table(table), target)
        settings = read_settings(assignments, depth=depth, inference=inference, num_chains=chains)
        train, test = split_rows(len(X), split=0, seed=seed) if report is not None else (slice(None), slice(0))
        targets = y if len(target) > 1 else y.iloc[:, 0]
        try:
            model = fit_model(
                X.iloc[train], targets.iloc[train], preset=preset, seed=seed, verbose=not quiet,
                init=None if init is None else load(init), checkpoint=checkpoint, every=every,
                callbacks=[] if log is None else [CsvLog(log, checkpoint)],
                **add_likelihood(settings, task, y, init is not None),
            )  # fmt: skip
        except Interrupted as interrupted:
            save_interrupted(interrupted, out, checkpoint)
            raise typer.Exit(128 + interrupted.signal) from None
        model.save(out, training_rows=not without_training_rows)
        typer.echo(f"{out}: {summary(model)}")
        if model.local is not None:
            kept = "left out of the file" if without_training_rows else "the file holds the training rows"
            typer.echo(f"local part: {model.local.gain:+.3f} nats per row, leaving one out; {kept}")
        if model.numerical_issues():
            typer.echo(f"numerical problems: {model.numerical_issues()}")
        if report is not None:
            training = X.iloc[train].to_numpy(float), targets.iloc[train].to_numpy()
            write_report(model, report, HeldOut(X.iloc[test], targets.iloc[test].to_numpy(), training), out.name)
            typer.echo(f"report: {report}")


def summary(model: Any) -> str:
    """A fitted model in one line."""
    chains, draws = model.posterior.draws
    return (
        f"{model.num_rows} rows, {len(model.feature_names)} inputs, {model.settings.depth} layers, "
        f"{chains * draws} posterior samples, {model.seconds:.1f} s, "
        f"training log-likelihood {model.trace[-1][1]:.3f}"
    )


def save_interrupted(interrupted: Any, out: Path, checkpoint: Path | None) -> None:
    """Save the samples drawn so far, if any, and say how to continue."""
    if interrupted.model is not None:
        interrupted.model.save(out)
        _, draws = interrupted.model.posterior.draws
        typer.echo(f"deepwell: interrupted; {out} holds the {draws} samples that each chain has drawn", err=True)
    else:
        typer.echo("deepwell: interrupted before sampling began, so there is no model yet", err=True)
    force = " (with --force, to replace the model)" if interrupted.model is not None else ""
    if checkpoint is None:
        typer.echo("deepwell: with --checkpoint FOLDER the same command could continue from here", err=True)
    else:
        typer.echo(f"deepwell: the same command{force} continues from the checkpoint in {checkpoint}", err=True)
