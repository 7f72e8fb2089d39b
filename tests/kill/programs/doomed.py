"""Runs one scenario's call and, when asked, kills itself with SIGKILL before the n-th SQL statement of an embedded store.

usage: doomed.py URL SCHEMA SCENARIO (prepare | call | statement N)
Prints `ready` and waits for a line before the call, so that a proxy can be armed; prints `done` after it.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.kill.scenarios import SCENARIOS, prepare, resume

connections: list[sqlite3.Connection] = []


def remember_connections() -> None:
    """Every sqlite3 connection opened from now on is known to the executioner."""
    connect = sqlite3.connect

    def remembering(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)
        connections.append(connection)
        return connection

    sqlite3.connect = remembering  # type: ignore[assignment]


def executioner(countdown: int) -> Callable[[str], None]:
    """Kills this process when the `countdown`-th statement is about to run."""
    left = countdown

    def before_statement(_sql: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return before_statement


def main() -> None:
    url, schema, name, mode = sys.argv[1:5]
    remember_connections()
    scenario = SCENARIOS[name]
    session = open_store(DatabaseSettings(url=url, schema=schema)).session()
    if mode == "prepare":
        prepare(session, scenario.state)
        return
    stage = resume(session)
    print("ready", flush=True)
    sys.stdin.readline()
    if mode == "statement":
        kill = executioner(int(sys.argv[5]))
        for connection in connections:
            connection.set_trace_callback(kill)
    scenario.call(session, stage)
    print("done", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
