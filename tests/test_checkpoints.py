"""Nothing is lost: resumed fits equal uninterrupted ones bit for bit, and every fault has its outcome."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from kills import study
from problems import Crash, crash_at
from test_fit import table

import deepwell
from deepwell import InputError, Interrupted
from deepwell.fits import group as grouping
from deepwell.fits.group import fit_group
from deepwell.store import checkpoint as checkpoints
from deepwell.store.checkpoint import BEFORE, NEWEST

QUICK = {"preset": "quick", "num_inducing": 8, "burn_in": 600, "num_samples": 60, "spacing": 10}


@pytest.fixture(scope="module")
def whole():
    return deepwell.fit(*table(40), **QUICK)


def assert_same(model, whole):
    X, _ = table(40)
    np.testing.assert_array_equal(model.predict(X, return_std=True), whole.predict(X, return_std=True))
    assert model.trace == whole.trace


@pytest.mark.parametrize("iteration", [250, 750])  # in burn-in, in sampling
def test_a_resumed_fit_equals_an_uninterrupted_one_bit_for_bit(whole, tmp_path, iteration):
    with pytest.raises(Crash):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[crash_at(iteration + 250)], **QUICK)
    seen = []
    resumed = deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[lambda e: seen.append(e.done)], **QUICK)
    assert seen[0] > iteration
    assert_same(resumed, whole)
    again = deepwell.fit(*table(40), checkpoint=tmp_path, callbacks=[crash_at(0)], **QUICK)  # nothing left to do
    assert_same(again, whole)


@pytest.mark.parametrize("inference", ["mcem", "sghmc-bayes", "dsvi", "bnn"])
def test_every_method_resumes(inference, tmp_path):
    settings = {**QUICK, "inference": inference, "e_steps": 300}
    uninterrupted = deepwell.fit(*table(40), **settings)
    with pytest.raises(Crash):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[crash_at(500)], **settings)
    assert_same(deepwell.fit(*table(40), checkpoint=tmp_path, **settings), uninterrupted)


def test_a_run_with_refused_steps_resumes_too(tmp_path):
    """Its trace holds numbers that are not finite."""
    settings = {**QUICK, "inference": "bnn", "hidden_units": (4,), "step_size": 3.0}
    with pytest.warns(UserWarning, match="steps were refused"):
        uninterrupted = deepwell.fit(*table(40), **settings)
    with pytest.raises(Crash):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[crash_at(750)], **settings)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resumed = deepwell.fit(*table(40), checkpoint=tmp_path, callbacks=[lambda e: seen.append(e.done)], **settings)
    assert seen[0] > 500
    np.testing.assert_array_equal(resumed.posterior.parameters, uninterrupted.posterior.parameters)


def start(tmp_path):
    with pytest.raises(Crash):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[crash_at(750)], **QUICK)


def test_the_seconds_before_a_checkpoint_count(tmp_path):
    def slow_to_the_end(event):
        time.sleep(0.2)
        if event.done >= 750:
            raise Crash

    with pytest.raises(Crash):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=0, callbacks=[slow_to_the_end], **QUICK)
    started = time.perf_counter()
    resumed = deepwell.fit(*table(40), checkpoint=tmp_path, **QUICK)
    assert resumed.seconds > time.perf_counter() - started + 0.4  # two chunks at least were before the checkpoint


def test_what_differs_from_the_checkpoint_is_named(tmp_path):
    start(tmp_path)
    X, y = table(40)
    with pytest.raises(InputError, match="burn_in was 600 and is now 700"):
        deepwell.fit(X, y, checkpoint=tmp_path, **{**QUICK, "burn_in": 700})
    with pytest.raises(InputError, match="seed was 0 and is now 1"):
        deepwell.fit(X, y, checkpoint=tmp_path, seed=1, **QUICK)
    with pytest.raises(InputError, match="the values of column 'x1' differ"):
        deepwell.fit(X + np.eye(40, 3, k=1), y, checkpoint=tmp_path, **QUICK)
    frame = pd.DataFrame(X, columns=["x1", "x0", "x2"])
    with pytest.raises(InputError, match="its columns were x0, x1, x2, y and are now x1, x0, x2, y"):
        deepwell.fit(frame, y, checkpoint=tmp_path, **QUICK)
    with pytest.raises(InputError, match="rows was 40 and is now 39"):
        deepwell.fit(X[:39], y[:39], checkpoint=tmp_path, **QUICK)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "another file"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(whole, tmp_path, damage):
    start(tmp_path)
    newest = tmp_path / NEWEST
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(
        {"truncated": content[:-100], "flipped": content, "empty": b"", "another file": b"PK" * 500}[damage]
    )
    seen = []
    with pytest.warns(UserWarning, match="going on from the checkpoint before it"):
        resumed = deepwell.fit(*table(40), checkpoint=tmp_path, callbacks=[lambda e: seen.append(e.done)], **QUICK)
    assert seen[0] > 250
    assert_same(resumed, whole)
    assert (tmp_path / f"unread.{NEWEST}").exists()  # put aside, not deleted


def test_with_both_damaged_the_fit_starts_again(whole, tmp_path):
    start(tmp_path)
    for name in (NEWEST, BEFORE):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="not a deepwell checkpoint"):
        assert_same(deepwell.fit(*table(40), checkpoint=tmp_path, **QUICK), whole)


def test_a_full_disk_is_told_once_and_the_fit_goes_on_and_tries_again(whole, tmp_path, monkeypatch):
    attempts = []
    replace = os.replace

    def full_at_first(*paths):
        attempts.append(paths)
        if len(attempts) < 3:
            raise OSError(28, "No space left on device")
        return replace(*paths)

    monkeypatch.setattr("os.replace", full_at_first)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = deepwell.fit(*table(40), checkpoint=tmp_path, every=0, **QUICK)
    assert [str(w.message) for w in caught if "No space left" in str(w.message)].__len__() == 1
    assert (tmp_path / NEWEST).exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert_same(model, whole)


def test_a_folder_that_cannot_be_made_is_refused_before_the_fit(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the checkpoint folder"):
        deepwell.fit(*table(40), checkpoint=tmp_path / "file" / "folder", **QUICK)
    with pytest.raises(InputError, match="every=-1 must be a number of seconds"):
        deepwell.fit(*table(40), checkpoint=tmp_path, every=-1, **QUICK)


def test_two_processes_cannot_share_a_folder(tmp_path):
    with checkpoints._locked(tmp_path):
        code = (
            "import sys, numpy as np, deepwell\n"
            "try: deepwell.fit(np.eye(5), np.arange(5.0), preset='quick', checkpoint=sys.argv[1])\n"
            "except deepwell.InputError as error: print(error)\n"
        )
        found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert "another process is using the checkpoint folder" in found.stdout


@pytest.mark.parametrize(("iteration", "draws"), [(250, None), (750, 25), (1000, 50)])
def test_ctrl_c_finishes_the_chunk_and_leaves_what_there_is(whole, tmp_path, iteration, draws):
    def interrupt(event):
        if event.done >= iteration:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as caught:
        deepwell.fit(*table(40), checkpoint=tmp_path, every=1e9, callbacks=[interrupt], **QUICK)
    assert caught.value.signal == signal.SIGINT
    if draws is None:
        assert caught.value.model is None
    else:
        model = caught.value.model
        assert model.posterior.draws == (1, draws)
        samples = zip(model.posterior.samples, whole.posterior.samples, strict=True)
        for a, b in samples:
            np.testing.assert_array_equal(a, b[:, : a.shape[1]])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same(deepwell.fit(*table(40), checkpoint=tmp_path, **QUICK), whole)


def test_a_signal_after_the_last_chunk_is_not_lost(whole):
    def interrupt(event):
        if event.done == event.total:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted) as caught:
        deepwell.fit(*table(40), callbacks=[interrupt], **QUICK)
    assert_same(caught.value.model, whole)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.signal == signal.SIGTERM


def test_a_signal_is_not_lost_to_an_error_before_the_end_of_its_chunk():
    """Who catches the error and goes on, as a study does after compiling, is told; without a signal it is the error."""

    def broken(event):
        if event.done == 250:
            signal.raise_signal(signal.SIGTERM)
        raise RuntimeError("the callback broke")

    with pytest.raises(Interrupted) as caught:
        deepwell.fit(*table(40), callbacks=[broken], **QUICK)
    assert caught.value.signal == signal.SIGTERM
    assert str(caught.value.__cause__) == "the callback broke"
    with pytest.raises(RuntimeError, match="the callback broke"):
        deepwell.fit(*table(40), callbacks=[broken], **{**QUICK, "burn_in": 100})


def test_nor_is_one_that_comes_to_a_group(monkeypatch):
    def broken(*arguments):
        signal.raise_signal(signal.SIGTERM)
        raise MemoryError("no room")

    monkeypatch.setattr(grouping, "run_group", broken)
    with pytest.raises(Interrupted) as caught:
        fit_group([table(40), table(40)], [0, 1], **QUICK)
    assert caught.value.signal == signal.SIGTERM


def test_fits_in_other_threads_leave_signals_alone(whole):
    found = []
    thread = threading.Thread(target=lambda: found.append(deepwell.fit(*table(40), **QUICK)))
    thread.start()
    thread.join()
    assert_same(found[0], whole)


COMMAND = (
    "import sys; from deepwell.cli.main import main\n"
    "sys.argv = ['deepwell', 'fit', sys.argv[1] + '/t.csv', '--target', 'y', "
    "'--out', sys.argv[1] + '/m.deepwell', '--preset', 'quick', '--checkpoint', sys.argv[1] + '/c', '--every', '0', "
    "'--force', '--set', 'num_inducing=8', '--set', 'burn_in=' + sys.argv[2]]; main()"
)


def test_sigterm_ends_the_command_with_its_code_and_a_sentence(tmp_path):
    X, y = table(40)
    np.savetxt(tmp_path / "t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path), "1000000"], stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "c" / NEWEST).exists() and process.poll() is None:
        threading.Event().wait(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "interrupted before sampling began" in errors
    assert "the same command continues from the checkpoint in" in errors


def test_out_of_memory_names_what_to_try(monkeypatch):
    import jax

    def exhausted(*args, **kwargs):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")

    monkeypatch.setattr("deepwell.fits.fit.run_one", exhausted)
    with pytest.raises(MemoryError, match=r"try batch_size=20 \(it was 40\) and num_chains=2 \(it was 4\)"):
        deepwell.fit(*table(40), num_chains=4, **QUICK)
    monkeypatch.setattr("deepwell.fits.group.run_group", exhausted)
    with pytest.raises(MemoryError, match=r"try fewer tables or splits at once \(they were 2\), or batch_size=20 \("):
        fit_group([table(40)] * 2, [0, 1], **QUICK)


def check_kills(count, tmp_path):
    done = study(count, count, tmp_path)
    print(done)
    assert done["kills"] == count
    assert done["different"] == done["failed"] == 0


def test_a_few_kills(tmp_path):
    check_kills(3, tmp_path)


@pytest.mark.slow
def test_200_kills(tmp_path):
    check_kills(200, tmp_path)
