"""What goes wrong after a commit costs no caller its answer, and no later caller either."""

from pathlib import Path

import pytest

from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.store.client_thread import ClientThread
from chokaq.store.options import DatabaseSettings


def test_a_bell_that_fails_after_the_commit_leaves_the_client_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ChokaQ(Settings(database=DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}")))
    app.job("a.v1", dict)
    create = ClientThread.__init__

    def with_a_broken_bell(self: ClientThread, *args: object, **kwargs: object) -> None:
        create(self, *args, **kwargs)  # type: ignore[arg-type]

        def broken(*_: object) -> None:
            raise RuntimeError("the bell is broken")

        self._accepted = broken

    monkeypatch.setattr(ClientThread, "__init__", with_a_broken_bell)
    first, second = app.enqueue_sync("a.v1", {}), app.enqueue_sync("a.v1", {})
    assert first.created
    assert second.created
    app.close()
