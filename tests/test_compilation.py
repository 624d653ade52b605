"""Programs are compiled once a shape: not again between chunks, for more rows to predict, or by a second command."""

import os
import subprocess
import sys
from contextlib import contextmanager

import jax.monitoring
import pandas as pd
import pytest
from test_fit import table

import deepwell
from deepwell.store.program_cache import keep_programs

SHORT = {"preset": "quick", "num_inducing": 8, "spacing": 5, "num_samples": 60}
COMPILED = "/jax/core/compile/backend_compile_duration"

FOUND = "/jax/compilation_cache/cache_hits"
COUNTING = """
import deepwell.cli.main as cli

def keep_and_count(keep=cli.keep_programs):
    keep()
    import jax.monitoring
    jax.monitoring.register_event_listener(lambda name, **_: print(name))

cli.keep_programs = keep_and_count
cli.main()
"""
"""A command that prints JAX's events, its finds in the cache among them."""


@contextmanager
def compilations():
    """Counts what is compiled in the block, or fetched from a cache of compiled programs."""
    found = []

    def listen(name, seconds, **_):
        if name == COMPILED:
            found.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("num_chains", [1, 3])
def test_more_chunks_and_fits_of_one_shape_compile_nothing_new(num_chains):
    X, y = table(40)
    settings = {**SHORT, "num_chains": num_chains}
    with compilations() as first:
        deepwell.fit(X, y, burn_in=100, **settings)
    with compilations() as again:
        deepwell.fit(X + 1.0, 2.0 * y, burn_in=100, seed=3, **settings)
    with compilations() as four_chunks:
        deepwell.fit(X, y, burn_in=1_000, **settings)
    with compilations() as one_chunk:
        deepwell.fit(X, y, burn_in=250, **settings)
    assert len(first) > 2  # burn-in, sampling, the end
    assert len(again) == 0
    assert len(four_chunks) == len(one_chunk) > 0


def test_predicting_any_number_of_rows_compiles_once():
    X, y = table(40)
    model = deepwell.fit(X, y, burn_in=100, **SHORT)
    with compilations() as first:
        model.predict(X[:3])
    with compilations() as again:
        model.predict(X)
        model.predict_dist(table(1_200)[0])
    assert len(first) >= 2
    assert len(again) == 0


def test_a_second_command_finds_the_programs_of_the_first(tmp_path):
    X, y = table(40)
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    kept = tmp_path / "cache" / "deepwell" / "programs"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def fit(name):
        command = ["fit", "table.csv", "--target", "y", "--out", name, "--preset", "quick", "--set", "burn_in=50"]
        words = [sys.executable, "-c", COUNTING, *command]
        said = subprocess.run(
            words, check=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        ).stdout
        return {path.name for path in kept.glob("*-cache")}, said.count(FOUND)

    first, _ = fit("one.deepwell")
    assert len(first) > 2
    again, found = fit("two.deepwell")
    assert again >= first  # a program whose compilation takes about as long as is worth keeping may come late
    assert found >= len(first)  # the same names alone could be those of programs compiled again


def test_the_users_own_folder_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "own"))
    assert keep_programs() is None
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "own")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert keep_programs() is None


def test_no_home_or_no_right_to_write_there_means_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
        assert keep_programs() is None
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", homeless)
    assert keep_programs() is None
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


COMPILE = """
from deepwell.store.program_cache import keep_programs
folder = keep_programs()
import sys
import jax, jax.numpy as jnp
for size in range(int(sys.argv[1]), int(sys.argv[1]) + 12):
    jax.jit(lambda x: jnp.sin(x) @ x.T)(jnp.ones((size, 2)))
"""


def compiling(first, environment):
    return subprocess.Popen(
        [sys.executable, "-c", COMPILE, str(first)], env=environment, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def cache(tmp_path):
    """An environment whose programs are all kept in a folder, and the folder."""
    folder = tmp_path / "deepwell" / "programs"
    folder.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    quick = {"XDG_CACHE_HOME": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return {**environment, **quick}, folder


def test_several_processes_keep_the_programs_within_the_limit(cache):
    environment, folder = cache
    processes = [compiling(first, {**environment, "JAX_COMPILATION_CACHE_MAX_SIZE": "40000"}) for first in (3, 9)]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert "compilation cache" not in "".join(errors)  # nothing failed to be read or written
    sizes = [path.stat().st_size for path in folder.glob("*-cache")]
    assert 20_000 < sum(sizes) <= 40_000
    assert len(sizes) == len(list(folder.glob("*-atime"))) > 2
    process = compiling(3, environment)  # without the limit of this test all would be there
    process.communicate(timeout=300)
    assert sum(path.stat().st_size for path in folder.glob("*-cache")) > 40_000


def test_a_program_that_a_killed_process_half_wrote_is_deleted(cache):
    environment, folder = cache
    (folder / "half-cache").write_bytes(b"half a program")
    _, errors = compiling(3, environment).communicate(timeout=300)
    assert "compilation cache" not in errors
    assert not (folder / "half-cache").exists()
    assert len(list(folder.glob("*-cache"))) > 2


def test_a_limit_of_the_users_own_is_left_alone(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("JAX_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "5")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")  # so that what is set here is undone
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "")
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    assert keep_programs() == tmp_path / "deepwell" / "programs"
    assert os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] == "5"
