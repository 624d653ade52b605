"""kill -9 at random moments: a fit with checkpoints is killed again and again until it ends, and must end the same.

python tests/kills.py 200
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from deepwell.store.checkpoint import NEWEST

COMMAND = """
import sys
from deepwell.cli.main import main
folder = sys.argv[1]
sys.argv = ["deepwell", "fit", folder + "/t.csv", "--target", "y", "--out", folder + "/m.deepwell", "--preset", "quick",
            "--checkpoint", folder + "/c", "--every", "0", "--force", "--quiet", "--set", "num_inducing=8",
            "--set", "burn_in=20000"]
main()
"""


def launch(folder: Path, cache: Path) -> subprocess.Popen:
    """The command in a process of its own; compiled programs are cached, so that it soon gets to work."""
    settings = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return subprocess.Popen([sys.executable, "-c", COMMAND, str(folder)], env={**os.environ, **settings})


def prepare(folder: Path) -> None:
    """A table of 40 rows."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    np.savetxt(folder / "t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")


def samples(folder: Path) -> bytes:
    """All numbers of the finished model."""
    import jax

    import deepwell

    model = deepwell.load(folder / "m.deepwell")
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model.posterior))


def study(kills: int, seed: int, root: Path) -> dict[str, int]:
    """Kill ``kills`` times over as many fits as it takes; every fit must end with the reference's bits."""
    rng = np.random.default_rng(seed)
    prepare(root / "reference")
    started = time.monotonic()
    process = launch(root / "reference", root / "cache")
    while not (root / "reference" / "c" / NEWEST).exists() and process.poll() is None:
        time.sleep(0.02)
    startup = time.monotonic() - started
    process.wait()
    working = time.monotonic() - started - startup
    reference = samples(root / "reference")
    done = {"kills": 0, "fits": 0, "different": 0, "failed": 0}
    while done["kills"] < kills:
        folder = root / f"fit{done['fits']}"
        prepare(folder)
        while True:
            process = launch(folder, root / "cache")
            try:
                code = process.wait(timeout=rng.uniform(0.3, 1.0) * startup + rng.uniform(0.0, 0.4) * working)
            except subprocess.TimeoutExpired:
                if done["kills"] < kills:
                    process.kill()
                    done["kills"] += 1
                code = process.wait()
            if code == 0:
                break
            if code != -9:
                done["failed"] += 1
                return done
        done["fits"] += 1
        done["different"] += samples(folder) != reference
    return done


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        print(study(int(sys.argv[1]), 0, Path(root)))
