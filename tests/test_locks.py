"""Locks between processes, and where there can be none."""

import os
import subprocess
import sys
import threading
import time

import filelock

from deepwell.store.locks import claimed


def test_a_claim_is_exclusive_and_ends_with_its_holder(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sys, pathlib\nfrom deepwell.store.locks import claimed\n"
         "with claimed(pathlib.Path(sys.argv[1])) as mine: print(mine, flush=True); sys.stdin.read()",
         str(tmp_path / "claim")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout.readline() == "True\n"
    with claimed(tmp_path / "claim") as mine:
        assert not mine
    holder.kill()
    holder.wait()
    with claimed(tmp_path / "claim") as mine:
        assert mine


def test_a_lock_that_another_user_made_is_a_lock(tmp_path, monkeypatch):
    """It may be read, not written: no right to write is not no lock."""
    whole = os.open

    def refused(path, flags, mode=0o777):
        if flags & os.O_RDWR:
            raise PermissionError
        return whole(path, flags, mode)

    with claimed(tmp_path / "claim") as mine:
        assert mine
        monkeypatch.setattr(os, "open", refused)
        with claimed(tmp_path / "claim") as theirs:
            assert not theirs
    with claimed(tmp_path / "claim") as theirs:
        assert theirs
    with claimed(tmp_path / "there is no such file") as anyone:
        assert anyone


def test_who_waits_gets_the_lock_when_it_is_free(tmp_path):
    free = threading.Event()
    order = []

    def hold():
        with claimed(tmp_path / "claim") as mine:
            assert mine
            free.set()
            time.sleep(0.3)
            order.append("first")

    holder = threading.Thread(target=hold)
    holder.start()
    assert free.wait(10)
    with claimed(tmp_path / "claim", wait=True) as mine:
        order.append("second")
        assert mine
    holder.join()
    assert order == ["first", "second"]


def test_everyone_gets_the_lock_on_a_filesystem_without_locks(tmp_path, monkeypatch):
    def unsupported(descriptor, blocking):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(filelock, "lock_descriptor", unsupported)
    for wait in (False, True):
        with claimed(tmp_path / "claim", wait) as one, claimed(tmp_path / "claim", wait) as other:
            assert one
            assert other
