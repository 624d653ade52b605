"""Seconds per iteration of each inference method, measured in one run, and their ratios to sghmc.

    taskset -c 0 python benchmarks/methods.py --depth 2

The shape is that of the protein set: 36,584 rows, 9 columns, 100 inducing points (decoupled: 300 and 50), minibatches
of 10,000. Rounds of a few iterations of each method are interleaved and medians reported, because machines are noisy.
"""

import argparse
import json
import statistics

import jax
from floors import device_rates, prediction_operations
from steps import programs, table
from timing import seconds_per_iteration

COMPARED = ("sghmc", "dsvi", "dsvi-decoupled", "sghmc-bayes", "bnn")


def prediction(name: str, depth: int, columns: int):
    """A function that predicts 10,000 rows with 200 samples."""
    import deepwell

    settings = {"burn_in": 1, "num_samples": 200, "spacing": 1, "width": columns, "batch_size": 256}
    X, y = table(1_000, columns)
    model = deepwell.fit(X, y, preset="paper", inference=name, depth=depth, **settings)
    rows, _ = table(10_000, columns)
    model.predict_dist(rows)

    def run(count: int) -> None:
        for _ in range(count):
            model.predict_dist(rows)

    return f"{name}, predicting 10,000 rows", run


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--rows", type=int, default=36_584)
    parser.add_argument("--columns", type=int, default=9)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    settings = {"depth": arguments.depth, "width": arguments.columns, "batch_size": arguments.batch}
    timed = []
    for name in COMPARED:
        for phase, run in programs(name, arguments.rows, arguments.columns, **settings):
            run(1)  # compiles
            timed.append((f"{name}, {phase}", run))
    timed += [prediction(name, arguments.depth, arguments.columns) for name in ("sghmc", "dsvi")]
    seconds = {label: [] for label, _ in timed}
    for _ in range(arguments.rounds):
        for label, run in timed:
            count = 1 if "predicting" in label else arguments.iterations
            seconds[label].append(seconds_per_iteration(run, count))
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    print(f"depth {arguments.depth}, jax {jax.__version__}, {jax.devices()[0].device_kind}")
    for label, median in medians.items():
        unit = medians["sghmc, predicting 10,000 rows" if "predicting" in label else "sghmc, burn-in"]
        print(f"{label:40s} {1e3 * median:9.2f} ms   {median / unit:5.2f} times sghmc")
    rate = device_rates(100, arguments.batch).operations_a_second
    floor = prediction_operations(arguments.depth, arguments.columns, arguments.columns, 100, 10_000, 200) / rate
    print(f"floor of predicting by sghmc, matrix products at {rate / 1e9:.0f} GFLOP/s: {1e3 * floor:.0f} ms")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"depth": arguments.depth, "seconds": seconds}, file, indent=1)


if __name__ == "__main__":
    main()
