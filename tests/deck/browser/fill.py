"""Very many rows, quickly, behind the store's back."""

import time

from tests.support.lab import Lab

CHUNK = 100_000
_DIGITS = (
    "(SELECT 0 AS D UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 "
    "UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
)
_NUMBERS = (
    "SELECT A.D + 10 * B.D + 100 * C.D + 1000 * E.D + 10000 * F.D AS N "
    f"FROM {_DIGITS} A, {_DIGITS} B, {_DIGITS} C, {_DIGITS} E, {_DIGITS} F"
)
_COLUMNS = (
    "Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, AgeFromUtc, CreatedAtUtc, KeyScope, "
    "PayloadHash, Payload"
)


def fill_archive(lab: Lab, count: int) -> str:
    """So many succeeded jobs, half of them in `emails`; the id of the newest."""
    return _fill(lab, "JobsArchive", count, "FinishedAtUtc, DurationMs", "{at}, 12")


def fill_dlq(lab: Lab, count: int) -> str:
    """So many stopped jobs; the id of the newest."""
    columns, values = (
        "FailedAtUtc, Status, FailureReason, ErrorType, ErrorMessage",
        "{at}, 4, 6, 'ValueError', 'no address'",
    )
    return _fill(lab, "JobsDLQ", count, columns, values)


def _fill(lab: Lab, table: str, count: int, columns: str, values: str) -> str:
    prefix = {"JobsArchive": "01JAAAAAAAAAAAAA", "JobsDLQ": "01JDDDDDDDDDDDDD"}[table]
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        at = _instant(lab, first)
        shown = values.replace("{at}", at)
        number = f"1000000000 + {first} + N"
        join = "||" if lab.kind == "sqlite" else "+"
        lab.execute(
            f"INSERT INTO {{{table}}} ({_COLUMNS}, {columns}) "
            f"SELECT '{prefix}' {join} CAST({number} AS varchar(10)), CASE WHEN N % 2 = 0 THEN 'emails' ELSE 'reports' END, "
            f"'email.send.v1', 10, {at}, 1, 1, 0, {at}, {at}, 0, '', '{{}}', {shown} FROM ({_NUMBERS}) Numbers WHERE N < {size}"
        )
    return f"{prefix}{1_000_000_000 + count - 1}"


def _instant(lab: Lab, first: int) -> str:
    """SQL for an instant that rises with the id, in the dialect's own kind of time."""
    if lab.kind == "sqlite":
        base = int(time.time() * 1000) - 2_000_000_000
        return f"({base} + {first} + N)"
    return f"DATEADD(millisecond, {first} + N, DATEADD(day, -20, SYSUTCDATETIME()))"
