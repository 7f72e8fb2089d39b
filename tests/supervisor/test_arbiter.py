"""The supervisor's loop, one turn at a time, without processes."""

from collections.abc import Iterator

import pytest

from chokaq.config.settings import QueueSettings, Settings
from chokaq.supervisor import arbiter as module
from chokaq.supervisor.arbiter import Arbiter
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.spawn import Entries


@pytest.fixture
def arbiter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Arbiter]:
    """A supervisor that forks nothing."""
    nobody = Entries(lambda *_args: 0, lambda *_args: 0)
    arbiter = Arbiter(Settings(queues={"q": QueueSettings(name="q")}), nobody)
    monkeypatch.setattr(arbiter.crew.keepers, "fill", lambda _now: None)
    yield arbiter
    arbiter._pipe.close()
    arbiter._notifier.close()
    arbiter.board.close()


def test_a_defect_over_one_death_does_not_lose_the_others_reaped_with_it(
    arbiter: Arbiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [[Exit(pid, 0, None, 0) for pid in (11, 12, 13)]]
    buried: list[int] = []

    def bury(end: Exit, _now: float) -> None:
        if end.pid == 11:
            raise ZeroDivisionError
        buried.append(end.pid)

    monkeypatch.setattr(module, "reap", lambda: batches.pop() if batches else [])
    monkeypatch.setattr(arbiter.crew, "bury", bury)
    assert not arbiter._turn()
    arbiter._turn()
    assert buried == [12, 13]
