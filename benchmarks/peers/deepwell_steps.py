"""deepwell, measured like its peers: iterations of one phase of a method, float32."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
from serve import serve, shape
from steps import programs

import deepwell


def main() -> None:
    """Build, then serve the requested phase."""
    depth, rows, columns, width, inducing, batch = shape()
    inference, phase = sys.argv[2].split("/")
    started = time.perf_counter()
    settings = {"depth": depth, "width": width, "num_inducing": inducing, "batch_size": batch}
    for name, run in programs(inference, rows, columns, **settings):
        if name == phase:
            versions = {"deepwell": deepwell.__version__, "jax": jax.__version__}
            serve(run, versions, time.perf_counter() - started)
            return


if __name__ == "__main__":
    main()
