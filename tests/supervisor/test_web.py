"""The web process is replaced with backoff, leaves when told to, and is nobody's reason to end."""

import os
import signal

import msgspec
import pytest

from chokaq.config.settings import DeckSettings, Settings
from chokaq.supervisor import web
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.web import GRACE, WebKeeper

SETTINGS = Settings(deck=DeckSettings(enabled=True))


class Host:
    """Forks nothing, and remembers what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forked: list[int] = []
        self.sent: list[tuple[int, int]] = []
        self.full = False
        monkeypatch.setattr(web, "fork", self._fork)
        monkeypatch.setattr(os, "kill", lambda pid, number: self.sent.append((pid, number)))

    def _fork(self, *_args: object) -> int:
        if self.full:
            raise OSError("no more processes")
        self.forked.append(100 + len(self.forked))
        return self.forked[-1]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """The host of a keeper."""
    return Host(monkeypatch)


def keeper(settings: Settings = SETTINGS) -> WebKeeper:
    """Over a process that is never run."""
    return WebKeeper(settings, lambda settings, parent_pid: 0, lambda: None)


def died(pid: int) -> Exit:
    """Killed."""
    return Exit(pid, None, 9, 1_000)


def test_it_is_forked_when_enabled_only(host: Host) -> None:
    keeper(Settings()).fill(0.0)
    assert host.forked == []
    one = keeper()
    one.fill(0.0)
    one.fill(1.0)
    assert host.forked == [100]


def test_each_death_waits_longer_and_other_deaths_are_not_its_own(host: Host) -> None:
    one = keeper()
    one.fill(0.0)
    assert not one.took(died(7), 0.0)
    waits = []
    now = 0.0
    for _ in range(4):
        assert one.pid is not None
        assert one.took(died(one.pid), now)
        begun = now
        while one.pid is None:
            now += 0.1
            one.fill(now)
        waits.append(now - begun)

    assert waits == sorted(waits)
    assert waits[-1] > 3 * waits[0]


def test_a_host_without_room_is_asked_again_later(host: Host) -> None:
    host.full = True
    one = keeper()
    one.fill(0.0)
    host.full = False
    one.fill(0.0)
    assert host.forked == []
    one.fill(10.0)
    assert host.forked == [100]


def test_a_reload_replaces_it_and_one_that_does_not_leave_is_killed(host: Host) -> None:
    one = keeper()
    one.fill(0.0)
    one.reload(SETTINGS, 1.0)
    assert host.sent == []
    one.reload(msgspec.structs.replace(SETTINGS, production=True), 1.0)
    one.fill(1.0 + GRACE)
    assert host.sent == [(100, signal.SIGTERM), (100, signal.SIGKILL)]
    one.took(died(100), 7.0)
    one.fill(20.0)
    assert host.forked == [100, 101]


def test_a_reload_that_disables_it_leaves_none(host: Host) -> None:
    one = keeper()
    one.fill(0.0)
    one.reload(Settings(), 1.0)
    one.took(died(100), 2.0)
    one.fill(60.0)
    assert host.forked == [100]


def test_at_the_end_it_leaves_and_is_not_forked_again(host: Host) -> None:
    one = keeper()
    one.fill(0.0)
    one.end(1.0)
    one.end(2.0)
    assert host.sent == [(100, signal.SIGTERM)]
    one.took(died(100), 2.0)
    one.fill(60.0)
    one.kill()
    assert host.forked == [100]
    assert len(host.sent) == 1
