"""When a link repeats a call, and over which connection; the driver is a fake."""

from typing import Any

import pytest

from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver import link as links
from chokaq.store.sqlserver.link import Link
from chokaq.store.url import DatabaseUrl

URL = "mssql://u:p@host/db"
VERSION = 7


class DriverError(Exception):
    """What the driver raises."""


class Connection:
    """Answers GetClock; the first call of anything else fails with what the test says."""

    def __init__(self, failures: list[DriverError]) -> None:
        self.failures = failures
        self.closed = False
        self.description: Any = None
        self._sets: list[list[Any]] = []

    def cursor(self) -> "Connection":
        return self

    def setinputsizes(self, _types: object) -> None:
        """Nothing to pin."""

    def execute(self, sql: str, *_args: object) -> None:
        if "GetClock" in sql:
            self.description, self._sets = ("now", "version"), [[(None, VERSION)]]
        elif self.failures:
            raise self.failures.pop(0)
        else:
            self.description, self._sets = ("answer",), [[("done",)]]

    def fetchall(self) -> list[Any]:
        return self._sets.pop(0)

    def nextset(self) -> bool:
        return bool(self._sets)

    def close(self) -> None:
        self.closed = True


def victim(text: str) -> DriverError:
    return DriverError(
        "40001", f"[40001] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]{text} (1205) (SQLExecDirectW)"
    )


@pytest.mark.parametrize(
    ("text", "connections"),
    [
        # SQL Server ends the transaction and leaves the session sound.
        ("Transaction (Process ID 52) was deadlocked on lock resources with another process", 1),
        # Babelfish leaves a session that answers with other people's memory (C27).
        ("deadlock detected", 2),
    ],
)
def test_a_deadlock_victim_is_repeated_over_a_connection_that_can_be_trusted(
    text: str, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []
    failures = [victim(text)]

    def connect(_options: object, _url: object) -> Connection:
        opened.append(Connection(failures))
        return opened[-1]

    monkeypatch.setattr(links, "connect", connect)
    monkeypatch.setattr(Link, "_driver_error", lambda _self: DriverError)
    link = Link(DatabaseSettings(url=URL), DatabaseUrl.parse(URL))
    link.open(VERSION)
    assert link.call("ListHotQueues", ()) == [[("done",)]]
    assert len(opened) == connections
    assert [connection.closed for connection in opened[:-1]] == [True] * (connections - 1)
