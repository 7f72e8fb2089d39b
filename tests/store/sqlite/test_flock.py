"""The writers' queue: who excludes whom, and what ends a lock."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chokaq.store.errors import StoreMisconfigured, StoreUnavailable
from chokaq.store.sqlite import interrupt
from chokaq.store.sqlite.flock import FileLock

from .conftest import Program, said, tell

HOLD = """
import sys
from pathlib import Path
from chokaq.store.sqlite.flock import FileLock
lock = FileLock(Path(sys.argv[1]), 30)
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("free", flush=True)
sys.stdin.readline()
"""

HOLD_AND_FORK = """
import os, sys
from pathlib import Path
from chokaq.store.sqlite.flock import FileLock
lock = FileLock(Path(sys.argv[1]), 30)
lock.acquire()
if os.fork() == 0:
    print("forked", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.wait()
"""


@pytest.fixture(autouse=True, params=["by a thread", "by a signal"])
def ended(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """How a wait that lasts too long comes to its end: in an application's process, in one of chokaq's own."""
    monkeypatch.setattr(interrupt, "_guard", None)
    before = signal.getsignal(interrupt.SIGNAL)
    if request.param == "by a signal":
        interrupt.allow()
    yield request.param
    signal.signal(interrupt.SIGNAL, before)


@pytest.fixture
def lock(tmp_path: Path) -> FileLock:
    return FileLock(tmp_path / "a.lock", 0.05)


@pytest.fixture
def other(tmp_path: Path) -> FileLock:
    return FileLock(tmp_path / "a.lock", 30)


def test_two_locks_of_one_process_exclude_each_other(lock: FileLock, other: FileLock) -> None:
    other.acquire()
    with pytest.raises(StoreUnavailable, match="writers' lock"):
        lock.acquire()
    other.release()
    lock.acquire()


def test_a_waiter_that_gave_up_takes_the_lock_from_nobody(lock: FileLock, other: FileLock) -> None:
    other.acquire()
    with pytest.raises(StoreUnavailable):
        lock.acquire()
    other.release()
    for _ in range(20):
        other.acquire()
        other.release()


def test_waiters_of_many_threads_give_up_each_in_its_time(tmp_path: Path, other: FileLock) -> None:
    locks = [FileLock(tmp_path / "a.lock", timeout) for timeout in (0.05, 0.1, 0.15, 30)]
    given_up = threading.Semaphore(0)

    def wait(lock: FileLock) -> bool:
        try:
            lock.acquire()
        except StoreUnavailable:
            given_up.release()
            return False
        lock.release()
        return True

    other.acquire()
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(wait, lock) for lock in locks]
        for _ in range(3):
            assert given_up.acquire(timeout=60)
        other.release()
        assert [found.result() for found in done] == [False, False, False, True]


def test_a_waiter_is_served_when_the_holder_lets_go(
    tmp_path: Path, other: FileLock, beside: Callable[..., Program]
) -> None:
    holder = beside(HOLD, tmp_path / "a.lock")
    assert said(holder) == "held"
    tell(holder)
    other.acquire()
    assert said(holder) == "free"


def test_the_kernel_frees_the_lock_of_a_killed_process(
    tmp_path: Path, lock: FileLock, other: FileLock, beside: Callable[..., Program]
) -> None:
    holder = beside(HOLD, tmp_path / "a.lock")
    assert said(holder) == "held"
    with pytest.raises(StoreUnavailable):
        lock.acquire()
    holder.kill()
    other.acquire()


def test_a_forked_child_does_not_keep_the_lock_of_a_parent_that_dies(
    tmp_path: Path, other: FileLock, beside: Callable[..., Program]
) -> None:
    parent = beside(HOLD_AND_FORK, tmp_path / "a.lock")
    assert said(parent) == "forked"
    parent.kill()
    other.acquire()
    tell(parent)


def test_a_missing_folder_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreMisconfigured, match=r"database\.url: cannot open .*gone.*must exist and be writable"):
        FileLock(tmp_path / "gone" / "a.lock", 1).acquire()


def test_closing_and_releasing_an_unused_lock_is_harmless(lock: FileLock) -> None:
    lock.release()
    lock.close()
    lock.acquire()
    lock.close()
    lock.close()
