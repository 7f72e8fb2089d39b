"""The supervisor's side of the probe port: it outlives whoever answers on it, and is nobody's reason to end."""

import os
import signal
import socket
from collections.abc import Iterator

import msgspec
import pytest

from chokaq.config.settings import ProbesSettings, Settings, SupervisorSettings
from chokaq.supervisor import web
from chokaq.supervisor.board import Board
from chokaq.supervisor.bulletin import Bulletin
from chokaq.supervisor.probes.keeper import STALL_LIMIT, ProbesKeeper
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.spawn import run_no_probes
from chokaq.supervisor.web import GRACE

SETTINGS = Settings(probes=ProbesSettings(port=0), supervisor=SupervisorSettings(respawn_min=0.5, respawn_max=4.0))


class House:
    """A keeper that forks nothing; what it forks and sends is written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.board, self.bulletin = Board(slots=1, runners=1), Bulletin()
        self.forked: list[int] = []
        self.sent: list[tuple[int, int]] = []
        self.keepers: list[ProbesKeeper] = []
        monkeypatch.setattr(web, "fork", self._fork)
        monkeypatch.setattr(os, "kill", lambda pid, number: self.sent.append((pid, number)))

    def keeper(self, settings: Settings = SETTINGS) -> ProbesKeeper:
        """Over processes that are never run."""
        self.keepers.append(ProbesKeeper(settings, self.board, self.bulletin, run_no_probes, lambda: None))
        return self.keepers[-1]

    def close(self) -> None:
        """Everything."""
        for keeper in self.keepers:
            keeper.close()
        self.bulletin.close()
        self.board.close()

    def _fork(self, *_args: object) -> int:
        self.forked.append(100 + len(self.forked))
        return self.forked[-1]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """For one test."""
    house = House(monkeypatch)
    yield house
    house.close()


def port_of(keeper: ProbesKeeper) -> int:
    """The port it holds."""
    assert keeper._listening is not None
    return int(keeper._listening.getsockname()[1])


def died(pid: int | None) -> Exit:
    """Killed."""
    assert pid is not None
    return Exit(pid, None, 9, 1_000)


def with_probes(**probes: object) -> Settings:
    """The settings with other probes."""
    return msgspec.structs.replace(SETTINGS, probes=msgspec.structs.replace(SETTINGS.probes, **probes))


def test_without_a_port_there_is_nobody(house: House) -> None:
    keeper = house.keeper(with_probes(port=None))
    keeper.fill(0.0)
    assert house.forked == []
    assert keeper.pid is None


def test_the_port_outlives_the_process(house: House) -> None:
    keeper = house.keeper()
    keeper.fill(0.0)
    port = port_of(keeper)
    assert keeper.took(died(100), 1.0)
    # Nobody answers, and whoever asks waits in the line.
    with socket.create_connection(("127.0.0.1", port)):
        keeper.fill(10.0)
    assert house.forked == [100, 101]
    assert port_of(keeper) == port
    keeper.kill()
    assert house.sent == [(101, signal.SIGKILL)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_taken_port_is_tried_again_and_told(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        keeper = house.keeper(with_probes(port=taken.getsockname()[1]))
        for second in range(3):
            keeper.fill(float(second))
        assert house.forked == []
    told = capfd.readouterr()
    lines = [line for line in (told.out + told.err).splitlines() if "probes_cannot_listen" in line]
    assert 1 <= len(lines) <= 3
    assert "in use" in lines[0]
    keeper.fill(60.0)
    assert house.forked == [100]


def test_a_reload_keeps_the_port_unless_it_has_changed(house: House) -> None:
    keeper = house.keeper()
    keeper.fill(0.0)
    port = port_of(keeper)
    keeper.reload(with_probes(lag_degraded=1.0), 1.0)
    assert house.sent == [(100, signal.SIGTERM)]
    assert port_of(keeper) == port
    keeper.took(died(100), 1.1)
    keeper.fill(1.1)
    assert house.forked == [100, 101]
    keeper.reload(with_probes(lag_degraded=1.0, host="::1"), 2.0)
    assert keeper._listening is None
    keeper.reload(with_probes(port=None), 3.0)
    keeper.took(died(101), 3.1)
    keeper.fill(60.0)
    assert house.forked == [100, 101]


def test_one_that_answers_nobody_any_more_is_replaced(house: House) -> None:
    keeper = house.keeper()
    now = house.bulletin.served_at
    for second in range(int(STALL_LIMIT) + 2):
        keeper.fill(now + second)
    assert house.sent == [(100, signal.SIGKILL)]
    keeper.fill(now + STALL_LIMIT + 2)
    assert len(house.sent) == 1
    keeper.took(died(100), now + STALL_LIMIT + 2)
    keeper.fill(now + STALL_LIMIT + 4)
    assert house.forked == [100, 101]


def test_one_that_was_frozen_with_the_whole_worker_is_given_time(house: House) -> None:
    keeper = house.keeper()
    keeper.fill(0.0)
    keeper.fill(3_600.0)
    for second in range(int(STALL_LIMIT)):
        keeper.fill(3_600.5 + second)
    assert house.sent == []


def test_at_a_reload_one_that_does_not_leave_is_killed(house: House) -> None:
    keeper = house.keeper()
    keeper.fill(0.0)
    keeper.reload(with_probes(database_timeout=1.0), 1.0)
    keeper.fill(1.0 + GRACE)
    assert house.sent == [(100, signal.SIGTERM), (100, signal.SIGKILL)]
