"""deepwell, GPflux and GPyTorch in one run on one core: time per iteration, ratios, memory, share of the floor.

    python benchmarks/speed.py --depths 2 3 5 --json speed.json

Each system runs in its own process and environment (``benchmarks/peers``, made under ``--environments`` if missing).
All are pinned to one core. Rounds of a few iterations are interleaved and medians reported, because machines are noisy.
The shape is that of the protein set: 36,584 rows, 9 columns, width 9, 100 inducing points, minibatches of 10,000.
``--only deepwell`` leaves the peers out. On a GPU use ``--device gpu --only deepwell GPyTorch``: nothing is pinned, and
all systems run in the environment of this script.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS, COLUMNS, WIDTH, INDUCING, BATCH = 36_584, 9, 9, 100, 10_000
DEEPWELL = "deepwell"
SYSTEMS = {
    "deepwell, burn-in": (DEEPWELL, "deepwell_steps.py", "sghmc/burn-in", 20),
    "deepwell, sampling": (DEEPWELL, "deepwell_steps.py", "sghmc/sampling", 50),
    "deepwell, dsvi": (DEEPWELL, "deepwell_steps.py", "dsvi/optimising", 10),
    "GPflux DSVI": ("gpflux", "gpflux_dsvi.py", "", 3),
    "GPyTorch DSVI, shared kernels": ("gpytorch", "gpytorch_dsvi.py", "shared", 3),
    "GPyTorch DSVI, tutorial": ("gpytorch", "gpytorch_dsvi.py", "tutorial", 2),
}
"""The environment of each system, its script, the script's argument, and iterations per round."""


class System:
    """A process that runs iterations when told to."""

    def __init__(self, python: str, script: str, argument: str, shape: str, core: int | None) -> None:
        device = "cuda" if core is None else "cpu"
        self.process = subprocess.Popen(
            [*pinned(core), python, str(HERE / "peers" / script), shape, argument, device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.ready = self._listen()

    def run(self, count: int) -> dict:
        """Run so many iterations; returns what the system measured."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self._listen()

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _listen(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(self.process.args)} ended early")  # type: ignore[arg-type]
        return json.loads(line)


def pinned(core: int | None) -> list[str]:
    """The start of a command that is pinned to a core."""
    return [] if core is None else ["taskset", "-c", str(core)]


def environment(name: str, folder: Path | None) -> str:
    """The Python of a system's environment, which is made with pinned versions if it is missing."""
    if name == DEEPWELL or folder is None:
        return sys.executable
    python = folder / name / "bin" / "python"
    if not python.exists():
        print(f"installing {name} ...", flush=True)
        venv.create(folder / name, with_pip=True)
        requirements = str(HERE / "peers" / f"{name}.txt")
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", requirements], check=True)
    return str(python)


def measure(depth: int, systems: dict, rounds: int, folder: Path | None, core: int | None) -> dict[str, dict]:
    """Medians of interleaved rounds of all systems at one depth."""
    shape = ",".join(str(n) for n in (depth, ROWS, COLUMNS, WIDTH, INDUCING, BATCH))
    running = {
        label: System(environment(name, folder), script, argument, shape, core)
        for label, (name, script, argument, _) in systems.items()
    }
    answers: dict[str, list[dict]] = {label: [] for label in running}
    for _ in range(rounds):
        for label, system in running.items():
            answers[label].append(system.run(systems[label][3]))
    for system in running.values():
        system.stop()
    return {
        label: {
            "seconds": statistics.median(answer["seconds"] for answer in answers[label]),
            "all_seconds": [answer["seconds"] for answer in answers[label]],
            "peak_memory": answers[label][-1]["peak_memory"],
            "first_call": running[label].ready["first"],
            "versions": running[label].ready["versions"],
        }
        for label in running
    }


def main() -> None:
    """Measure and print a table for each depth."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="systems to run, by the start of their names")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--core", type=int, default=0, help="core to pin to, on a CPU")
    parser.add_argument("--environments", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    systems = {k: v for k, v in SYSTEMS.items() if not arguments.only or k.startswith(tuple(arguments.only))}
    on_gpu = arguments.device == "gpu"
    core, folder = (None, None) if on_gpu else (arguments.core, arguments.environments)
    report = {"machine": platform.processor() or platform.machine(), "depths": {}, **rates(core)}
    for depth in arguments.depths:
        measured = measure(depth, systems, arguments.rounds, folder, core)
        report["depths"][depth] = measured
        show(depth, measured, report)
        if arguments.json:
            arguments.json.write_text(json.dumps(report, indent=1))


def rates(core: int | None) -> dict[str, float]:
    """Rates of the device, measured in a process of its own that is pinned like the others."""
    code = f"import json, floors; print(json.dumps(floors.device_rates({INDUCING}, {BATCH})._asdict()))"
    answer = subprocess.run(
        [*pinned(core), sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE
    )
    return json.loads(answer.stdout)


def show(depth: int, measured: dict[str, dict], machine: dict) -> None:
    """One table: milliseconds, ratio to deepwell's burn-in, memory, share of the floor."""
    from floors import Device, floor_seconds, iteration_bytes, iteration_operations

    device = Device(*(machine[name] for name in Device._fields))
    unit = measured.get("deepwell, burn-in", next(iter(measured.values())))["seconds"]
    print(
        f"\ndepth {depth}; square products {device.operations_a_second / 1e9:.0f} GFLOP/s, "
        f"thin ones {device.thin_operations_a_second / 1e9:.0f}, copies {device.bytes_a_second / 1e9:.0f} GB/s"
    )
    for label, row in measured.items():
        line = f"{label:32s} {1e3 * row['seconds']:9.2f} ms {row['seconds'] / unit:7.2f} times burn-in"
        line += f" {row['peak_memory'] / 2**20:7.0f} MiB, first call {row['first_call']:5.1f} s"
        if label in ("deepwell, burn-in", "deepwell, sampling"):
            shape = (label.split(", ")[1], depth, COLUMNS, WIDTH, INDUCING, BATCH)
            floor = floor_seconds(iteration_operations(*shape), iteration_bytes(*shape), device)
            line += f", floor {1e3 * floor:.3f} ms: {floor / row['seconds']:.0%} of it reached"
        print(line, flush=True)


if __name__ == "__main__":
    main()
