"""``deepwell evaluate``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deepwell.cli.arguments import add_likelihood, check_output, read_settings
from deepwell.cli.console import errors_in_one_sentence, on_device, print_scores
from deepwell.cli.options import Chains, Depth, Device, Force, Inference, Preset, Quiet, Seed, Set, Table, Target, Task
from deepwell.errors import InputError


def evaluate(
    table: Table,
    target: Target,
    splits: Annotated[int, typer.Option(help="Number of train-test splits.")] = 3,
    first_split: Annotated[int, typer.Option(help="Number of the first split.")] = 0,
    test_size: Annotated[float, typer.Option(help="Share of the rows to test on.")] = 0.2,
    task: Task = None,
    depth: Depth = None,
    preset: Preset = "default",
    inference: Inference = None,
    chains: Chains = None,
    assignments: Set = None,
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

    with errors_in_one_sentence(), on_device(device):
        if json_file is not None:
            check_output(json_file, force)
        if splits < 1 or first_split < 0:
            raise InputError(f"--splits {splits} --first-split {first_split}: there must be at least one split")
        X, y = split_target(read_table(table), target)
        settings = read_settings(assignments, depth=depth, inference=inference, num_chains=chains)
        result = evaluate_splits(
            X, y, range(first_split, first_split + splits), seed=seed, test_size=test_size, preset=preset,
            verbose=not quiet, **add_likelihood(settings, task, y),
        )  # fmt: skip
        rows = {f"split {row['split']}": row for row in result["splits"]} | {"mean": result["mean"]}
        print_scores(f"{table.name}, {int(100 * test_size)} % held out", rows)
        if json_file is not None:
            write_atomically(json_file, json.dumps(result, indent=1).encode())
