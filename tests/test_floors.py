"""The floor under an iteration: counted by hand, and from the rate of a full device."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "floors.py"
SHAPE = {"depth": 2, "columns": 9, "width": 9, "inducing": 100, "batch": 10_000}
PEAK, LAUNCH = 6e13, 2e-5


@pytest.fixture
def floors():
    spec = importlib.util.spec_from_file_location("floors", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_on_a_device_with_idle_units_the_floor_is_that_of_the_full_device(floors, monkeypatch):
    """A simulated GPU: 20 us to launch a product, then 60 TFLOP/s. A thin product reaches 16 % of that rate."""

    def simulated(rows, side, repeats):
        operations = 2.0 * rows * side**2
        return operations / (LAUNCH + operations / PEAK)

    monkeypatch.setattr(floors, "product_rate", simulated)
    monkeypatch.setattr(floors, "bandwidth", lambda: 4.8e12)
    monkeypatch.setattr(floors.jax, "default_backend", lambda: "gpu")
    device = floors.device_rates(SHAPE["inducing"], SHAPE["batch"])
    assert device.thin_operations_a_second < 0.2 * PEAK
    operations, moved = (count("burn-in", **SHAPE) for count in (floors.iteration_operations, floors.iteration_bytes))
    assert floors.floor_seconds(operations, moved, device) == pytest.approx(operations / PEAK, rel=0.01)


def test_the_floor_is_the_larger_of_operations_and_bytes(floors):
    device = floors.Device(operations_a_second=1e9, bytes_a_second=1e6, thin_operations_a_second=1.0)
    assert floors.floor_seconds(2e9, 1e6, device) == 2.0
    assert floors.floor_seconds(2e9, 5e6, device) == 5.0


def test_what_one_layer_moves_while_sampling(floors):
    """1,000 rows of 3 inputs and a target, their 50 stored features, and 10 copies of v = (50, 1)."""
    moved = floors.iteration_bytes("sampling", depth=1, columns=3, width=1, inducing=50, batch=1_000)
    assert moved == 4 * (1_000 * 4 + 1_000 * 50 + 10 * 50)


def test_a_rate_counts_two_operations_for_each_product_of_numbers(floors, monkeypatch):
    """In 2 s, 3 products of (6, 4) by (4, 4), each of 6 x 4 x 4 multiplications and as many additions."""
    monkeypatch.setattr(floors, "_median_seconds", lambda run: run().size / 12)
    assert floors.product_rate(rows=6, side=4, repeats=3) == 3 * 2 * 6 * 4 * 4 / 2
