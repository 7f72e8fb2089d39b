"""A command that makes jobs due wakes an idle worker on this host, as an enqueue does."""

from pathlib import Path

import pytest

from chokaq.store.doorbell import Doorbell
from tests.support.fake_repairs import FakeRepairs
from tests.support.jobs import QUEUE

from .conftest import Cli


def test_a_resurrection_rings_the_bell_of_the_queue(
    cli: Cli, fake: FakeRepairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    job = fake.stopped()
    fake.stopped()
    bell = Doorbell(fake.store.identity).listen(QUEUE)
    try:
        cli("dlq", "resurrect", job)
        assert bell.drain() == 1
        cli("dlq", "resurrect", "--all", "--yes")
        assert bell.drain() == 1
        cli("dlq", "resurrect", job, code=1)
        assert bell.drain() == 0
    finally:
        bell.close()
