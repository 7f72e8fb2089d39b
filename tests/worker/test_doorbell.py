"""The doorbell is lossy, never blocks and never raises."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chokaq.store.doorbell import Doorbell
from chokaq.worker.listening import Listener


@pytest.fixture
def doorbell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doorbell:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Doorbell("file:/somewhere/jobs.db")


def test_a_ring_reaches_a_listening_bell(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    doorbell.ring("emails")
    assert bell.drain() == 1
    bell.close()


def test_a_ring_goes_to_one_bell_only(doorbell: Doorbell) -> None:
    bells = [doorbell.listen("emails") for _ in range(4)]
    doorbell.ring("emails")
    assert sum(bell.drain() for bell in bells) == 1
    for bell in bells:
        bell.close()


def test_queues_do_not_hear_each_other(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    doorbell.ring("reports")
    assert bell.drain() == 0
    bell.close()


def test_ringing_where_nobody_listens_is_harmless(doorbell: Doorbell) -> None:
    doorbell.ring("nobody")


def test_a_stale_socket_is_removed_and_the_next_bell_rings(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    stale = doorbell.folder("emails") / "1-dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(stale))
    for _ in range(40):
        doorbell.ring("emails")
        assert bell.drain() == 1
    assert not stale.exists()
    bell.close()


def test_a_bell_full_of_rings_neither_blocks_nor_raises(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    for _ in range(2_000):
        doorbell.ring("emails")
    assert bell.drain() >= 1
    bell.close()


def test_a_full_bell_passes_the_ring_on(doorbell: Doorbell) -> None:
    full = doorbell.listen("emails")
    for _ in range(2_000):
        doorbell.ring("emails")
    other = doorbell.listen("emails")
    for _ in range(20):
        doorbell.ring("emails")
    assert other.drain() >= 1
    full.close()
    other.close()


def test_the_folder_and_the_socket_are_for_their_owner_alone(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    folder = doorbell.folder("emails")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    bell.close()
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_may_enter_is_refused(doorbell: Doorbell) -> None:
    folder = doorbell.folder("emails")
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="this user alone"):
        doorbell.listen("emails")
    doorbell.ring("emails")


def test_a_link_in_place_of_the_folder_is_refused(doorbell: Doorbell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    doorbell.folder("emails").symlink_to(elsewhere)
    with pytest.raises(PermissionError):
        doorbell.listen("emails")


def test_a_long_runtime_folder_still_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("long" * 40)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    doorbell = Doorbell("x")
    bell = doorbell.listen("emails")
    assert len(os.fsencode(str(doorbell.folder("emails")))) > 107
    doorbell.ring("emails")
    assert bell.drain() == 1
    bell.close()


def test_a_bell_that_is_closed_tells_how_many_rings_nobody_heard(doorbell: Doorbell) -> None:
    bell = doorbell.listen("emails")
    doorbell.ring("emails")
    doorbell.ring("emails")
    assert bell.close() == 2
    assert bell.close() == 0


async def test_rings_that_wait_on_a_bell_taken_down_reach_a_sibling(doorbell: Doorbell) -> None:
    heard = asyncio.Event()
    full = Listener("file:/somewhere/jobs.db", "emails", lambda: None)
    assert full.hang() is False
    assert full.hang() is True
    doorbell.ring("emails")
    idle = Listener("file:/somewhere/jobs.db", "emails", heard.set)
    idle.hang()
    full.take_down()
    await asyncio.wait_for(heard.wait(), 10)
    idle.take_down()
    full.take_down()
    assert list(doorbell.folder("emails").iterdir()) == []


async def test_a_folder_that_is_not_ours_alone_is_complained_of_once(doorbell: Doorbell) -> None:
    doorbell.folder("emails").mkdir(mode=0o755)
    doorbell.folder("emails").chmod(0o755)
    deaf = Listener("file:/somewhere/jobs.db", "emails", lambda: None)
    with capture_logs() as logs:
        assert deaf.hang()
        assert deaf.hang()
    assert [log["event"] for log in logs] == ["doorbell_unavailable"]
