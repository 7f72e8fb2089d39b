"""SIGKILL around every message of every store call over TDS (C10, C11): after sending, and after the commit with the answer cut."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from chokaq.store.errors import StoreUnavailable
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import DeathNotice
from tests.kill.scenarios import JOBS, POLICIES, QUEUE, SCENARIOS, WORKER_ID, Stage, prepare, resume, ulid
from tests.kill.snapshots import TABLES, snapshot, without_repeats
from tests.support import stores
from tests.support.lab import Lab
from tests.support.proxy import Proxy

PROGRAM = Path(__file__).parent / "programs" / "doomed.py"
MOST_MESSAGES = 12


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy in front of the live server."""
    parts = urlsplit(stores.live_url() or "")
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 1433)
    yield proxy
    proxy.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator["Live"]:
    """The live store, cleaned for every attempt."""
    live = Live(stores.options(stores.SQLSERVER, tmp_path))
    yield live
    live.close()


class Live:
    """The live store with its back door."""

    def __init__(self, options: DatabaseSettings) -> None:
        self.options = options
        self.store = stores.prepare(options)
        self.lab: Lab = stores.laboratory(options)
        self.session: Session = self.store.session()

    def reset(self, name: str) -> Stage:
        """Empty tables, then the scenario's preparation."""
        self.lab.clean()
        return prepare(self.session, SCENARIOS[name].state)

    def picture(self) -> dict[str, Any]:
        """All tables, masked."""
        return snapshot({table: self.lab.rows(table) for table in TABLES})

    def close(self) -> None:
        """Both connections."""
        self.session.close()
        self.lab.close()


def through(proxy: Proxy, url: str) -> str:
    """The same URL, by way of the proxy."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}"))


def start(url: str, name: str) -> "subprocess.Popen[bytes]":
    """The program, connected and waiting for the word."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), url, stores.SCHEMA, name, "call"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def run_doomed(live: Live, proxy: Proxy, name: str, direction: str, countdown: int) -> bool:
    """Kill the program at that message; False when it got through without sending so many."""
    process = start(through(proxy, live.options.url), name)
    assert process.stdin is not None
    assert process.stdout is not None
    proxy.arm(direction, countdown, lambda: os.kill(process.pid, signal.SIGKILL), swallow=direction == "response")
    process.stdin.write(b"go\n")
    process.stdin.flush()
    done = process.stdout.readline() == b"done\n"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    return not done


@pytest.mark.parametrize("direction", ["request", "response"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_message_leaves_all_or_nothing_and_a_repeat_completes_it(
    name: str, direction: str, stage: Live, proxy: Proxy
) -> None:
    scenario = SCENARIOS[name]
    place = stage.reset(name)
    before = stage.picture()
    scenario.call(stage.session, place)
    after = stage.picture()
    for countdown in range(1, MOST_MESSAGES):
        stage.reset(name)
        if not run_doomed(stage, proxy, name, direction, countdown):
            break
        outcome(stage, proxy, before, after)
        scenario.call(stage.session, resume(stage.session))
        assert without_repeats(stage.picture(), name) == without_repeats(after, name), f"{direction} {countdown}"
        stage.reset(name)
        run_doomed(stage, proxy, name, direction, countdown)
        committed = outcome(stage, proxy, before, after)
        notice = DeathNotice(worker_id=WORKER_ID, queue=QUEUE, cause="crash", signal=9)
        while not stage.session.release_worker(resume(stage.session).rescuer, notice, POLICIES).done:
            pass
        states = set(stage.session.get_statuses([ulid(number) for number in range(JOBS)])) - {None}
        assert states in ([scenario.after_crash[committed]] if before != after else scenario.after_crash.values())
    else:
        pytest.fail(f"{name} sent more than {MOST_MESSAGES} messages")
    assert countdown > 1, "the call sent nothing"


def outcome(live: Live, proxy: Proxy, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the killed call was committed; anything else than all or nothing fails."""
    proxy.wait_idle()
    left = live.picture()
    assert left in (before, after)
    return left != before


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cut_answer_is_settled_by_the_same_call_again(name: str, stage: Live, proxy: Proxy) -> None:
    scenario = SCENARIOS[name]
    scenario.call(stage.session, stage.reset(name))
    after = stage.picture()
    stage.reset(name)
    store = open_store(DatabaseSettings(url=through(proxy, stage.options.url), schema=stage.options.schema))
    session = store.session()
    place = resume(session)
    proxy.arm("response", 1, lambda: None, swallow=True)
    with pytest.raises(StoreUnavailable):
        scenario.call(session, place)
    assert proxy.fired.is_set()
    scenario.call(session, place)
    assert without_repeats(stage.picture(), name) == without_repeats(after, name)
    session.close()
