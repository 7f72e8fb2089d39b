"""The maintenance process itself: how it begins and how it ends."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from chokaq.config import ConfigError
from chokaq.config.settings import QueueSettings, Settings, SupervisorSettings
from chokaq.maintenance.process import run_maintenance, with_all_queues
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.supervisor.board import Board, SlotState
from tests.support.polling import wait_until

from .fakes import Boss

pytestmark = pytest.mark.processes


@pytest.fixture
def boss() -> Iterator[Boss]:
    """A channel that is closed in the end."""
    boss = Boss()
    yield boss
    boss.close()


def forked(boss: Boss, run: Callable[[socket.socket], int]) -> int:
    """Fork as the supervisor does, signals blocked; returns the pid."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            boss.ours.close()
            code = run(boss.theirs)
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    boss.theirs.close()
    return pid


def settings(options: DatabaseSettings) -> Settings:
    """A worker with one queue."""
    return Settings(
        database=options,
        queues={"emails": QueueSettings(name="emails")},
        supervisor=SupervisorSettings(shutdown_grace=5.0),
    )


def exit_code(pid: int) -> int:
    """Wait for its end."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_it_lives_through_every_signal_and_ends_by_the_supervisors_word(
    store: Store, session: Session, store_options: DatabaseSettings, boss: Boss
) -> None:
    board = Board(slots=1)
    number = board.take()
    assert number is not None
    parent = os.getpid()
    pid = forked(boss, lambda channel: run_maintenance(settings(store_options), channel, board.slot(number), parent))
    wait_until(lambda: board.read(number).state is SlotState.READY, "the maintenance process ready")
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU"):
        os.kill(pid, signal.Signals[name])
    boss.tell(1)
    acks: list[int] = []
    wait_until(lambda: bool(acks.extend(boss.acks()) or acks), "the acknowledgement")
    [row] = session.list_workers()
    assert (row.worker_id, row.pid, row.queue) == (board.read(number).worker_id, pid, "")
    boss.stop()
    assert exit_code(pid) == 0
    assert session.list_workers() == []


def test_when_the_supervisor_is_gone_it_ends_by_itself(
    store: Store, store_options: DatabaseSettings, boss: Boss
) -> None:
    board = Board(slots=1)
    number = board.take()
    assert number is not None
    parent = os.getpid()
    pid = forked(boss, lambda channel: run_maintenance(settings(store_options), channel, board.slot(number), parent))
    wait_until(lambda: board.read(number).state is SlotState.READY, "the maintenance process ready")
    boss.die()
    assert exit_code(pid) == 76


def test_an_unusable_store_is_a_failed_boot_with_one_line(capfd: pytest.CaptureFixture[str], boss: Boss) -> None:
    board = Board(slots=1)
    number = board.take()
    assert number is not None
    parent = os.getpid()
    unusable = settings(DatabaseSettings(url="sqlite:////proc/nowhere/chokaq.db"))
    pid = forked(boss, lambda channel: run_maintenance(unusable, channel, board.slot(number), parent))
    assert exit_code(pid) == 78
    told = capfd.readouterr().err
    assert told.startswith("chokaq: maintenance cannot start: ")
    assert told.count("\n") == 1


def test_the_leader_knows_every_queue_of_the_file_not_only_those_served_here(tmp_path: Path) -> None:
    served = Settings(queues={"a": QueueSettings(name="a", max_workers=3)}, source=tmp_path / "chokaq.yaml")
    file = Settings(queues={"a": QueueSettings(name="a"), "b": QueueSettings(name="b", zombie_timeout=9.0)})
    whole = with_all_queues(served, lambda _path: file)
    assert whole.queues == {"a": served.queues["a"], "b": file.queues["b"]}

    def broken(_path: Path | None) -> Settings:
        raise ConfigError("broken")

    assert with_all_queues(served, broken) == served
    without_file = msgspec.structs.replace(served, source=None)
    assert with_all_queues(without_file, broken) == without_file
