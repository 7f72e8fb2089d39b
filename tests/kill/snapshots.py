"""Everything a store holds, with what differs between two equal runs (times, durations) masked."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

TABLES = (
    "JobsHot", "JobsArchive", "JobsDLQ", "JobKeys", "CancelRequests", "JobNotes", "JobAttempts", "AuditLog", "Workers", "Queues",
    "Leadership", "MetricBuckets", "QueueTotals",
)  # fmt: skip
DURATION = re.compile(r"\d+ ms")
MASKED = {"DurationMs", "MaxDurationMs", "AuditId", "Ticket"}


def mask(table: str, row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """One row without its times; pickup lags are summed over the histogram."""
    shown = {
        name: (None if value is None else "time") if name.endswith("Utc") else value
        for name, value in row.items()
        if name not in MASKED and not name.startswith("Lag")
    }
    if table == "MetricBuckets":
        shown["Lags"] = sum(value for name, value in row.items() if name.startswith("Lag"))
    return tuple(sorted((name, DURATION.sub("some ms", str(value))) for name, value in shown.items()))


def snapshot(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, list[tuple[tuple[str, Any], ...]]]:
    """A comparable picture of all tables; buckets of the same outcome that fell into two seconds are one."""
    picture = {table: sorted(mask(table, row) for row in rows[table]) for table in TABLES}
    merged: dict[tuple[tuple[str, Any], ...], int] = {}
    for row in picture["MetricBuckets"]:
        key = tuple(item for item in row if item[0] not in {"JobCount", "Lags"})
        merged[key] = merged.get(key, 0) + int(dict(row)["JobCount"])
    picture["MetricBuckets"] = sorted((*key, ("JobCount", count)) for key, count in merged.items())
    return picture


def without_repeats(shown: dict[str, Any], name: str) -> dict[str, Any]:
    """An operator's repeated order is an order of its own in the audit log."""
    return {table: rows for table, rows in shown.items() if not (name == "set_queue" and table == "AuditLog")}
