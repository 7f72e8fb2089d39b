"""The procedures, their parameters and the types these are sent as.

A driver reuses a prepared statement only for the same `str` object, so each text is made once per schema name.
"""

import re
from functools import cache
from typing import NamedTuple

from chokaq.store.errors import StoreMisconfigured
from chokaq.store.sqlserver.results import RESULTS

Type = tuple[int, int, int]
"""SQL type code, size, digits: what `cursor.setinputsizes` takes (the codes are ODBC's)."""

ID: Type = (1, 26, 0)
ID_OR_EMPTY: Type = (12, 26, 0)
NAME: Type = (12, 255, 0)
INT: Type = (4, 0, 0)
BIGINT: Type = (-5, 0, 0)
BIT: Type = (-7, 0, 0)
DOCUMENT: Type = (-9, 0, 0)
TEXT: Type = (12, 0, 0)
BYTES: Type = (-3, 0, 0)


def text(size: int) -> Type:
    """nvarchar(size)."""
    return (-9, size, 0)


def ascii_text(size: int) -> Type:
    """varchar(size)."""
    return (12, size, 0)


PROCEDURES: dict[str, dict[str, Type]] = {
    "EnqueueJobs": {"Mapped": text(33), "Ids": TEXT, "Jobs": DOCUMENT, "Bytes": BYTES, "InCaller": BIT},
    "EnqueueKeyedJobs": {"Mapped": text(33), "Jobs": DOCUMENT, "Bytes": BYTES, "InCaller": BIT},
    "GetJob": {"JobId": ID},
    "GetStatuses": {"Jobs": DOCUMENT},
    "RegisterWorker": {
        "WorkerId": ID, "Queue": NAME, "Host": text(255), "Pid": INT, "Version": ascii_text(50), "MaxWorkers": INT,
    },
    "FetchJobs": {"WorkerId": ID, "Queue": NAME, "Request": BIGINT, "Size": INT, "FleetCap": INT},
    "StartJobs": {"WorkerId": ID, "Jobs": TEXT},
    "KeepAlive": {
        "WorkerId": ID, "Mapped": text(33), "Jobs": DOCUMENT, "Running": INT, "Buffered": INT, "LoopLagMs": INT,
        "MemoryKb": BIGINT, "Draining": BIT,
    },
    "ArchiveSucceeded": {"WorkerId": ID, "Slot": INT, "Jobs": TEXT},
    "RescheduleForRetry": {"WorkerId": ID, "Slot": INT, "Mapped": text(33), "Jobs": DOCUMENT},
    "ArchiveFailed": {"WorkerId": ID, "Slot": INT, "Mapped": text(33), "Jobs": DOCUMENT},
    "ReleaseJobs": {"WorkerId": ID, "Slot": INT, "Jobs": DOCUMENT},
    "ReleaseWorker": {
        "Slot": INT, "WorkerId": ID, "Queue": NAME, "Cause": ascii_text(20), "Notice": text(1000), "Culprits": DOCUMENT,
        "Policies": DOCUMENT, "Backoffs": DOCUMENT,
    },
    "RecoverAbandoned": {
        "Slot": INT, "Queue": NAME, "TimeoutMs": BIGINT, "AfterWorker": ID_OR_EMPTY, "AfterId": ID_OR_EMPTY,
    },
    "ArchiveZombies": {
        "Slot": INT, "Queue": NAME, "TimeoutMs": BIGINT, "Policies": DOCUMENT, "Backoffs": DOCUMENT,
        "AfterWorker": ID_OR_EMPTY, "AfterId": ID_OR_EMPTY,
    },
    "TakeLeadership": {"WorkerId": ID, "IntervalMs": BIGINT},
    "ListHotQueues": {},
    "PurgeArchive": {"Queue": NAME, "OlderThanMs": BIGINT, "Size": INT},
    "PurgeDLQ": {"Queue": NAME, "OlderThanMs": BIGINT, "Size": INT},
    "PurgeLeftovers": {"Size": INT},
    "RollUp": {},
    "CancelJobs": {"Jobs": DOCUMENT, "Actor": text(100), "Reason": text(1000), "OwnOnly": BIT, "RequestId": ID_OR_EMPTY},
    "SetQueue": {
        "Queue": NAME, "Mask": INT, "MaxWorkers": INT, "FleetMaxWorkers": INT, "ExecutionTimeoutMs": BIGINT,
        "ZombieTimeoutMs": BIGINT, "IsPaused": INT, "IsActive": INT, "Actor": text(100), "Reason": text(1000),
    },
    "ListJobs": {
        "Pillar": ascii_text(10), "Queue": NAME, "Status": INT, "Type": NAME, "Reason": INT, "Tag": text(1000), "Limit": INT,
        "After": ID_OR_EMPTY, "FromMs": BIGINT, "UntilMs": BIGINT, "Search": text(1000),
    },
    "ListQueues": {"Queue": NAME},
    "ListPriorities": {"Queue": NAME},
    "ListWorkers": {"Ended": BIT},
    "ListAttempts": {"JobId": ID},
    "ListAudit": {"Target": NAME, "Limit": INT, "After": BIGINT, "Actor": text(100), "Action": ascii_text(50)},
    "ListBuckets": {"Queue": NAME, "SinceMs": BIGINT},
    "ClaimRuns": {"WorkerId": ID, "Mapped": text(33), "Claims": DOCUMENT},
    "RenewClaims": {"Mapped": text(33), "Claims": DOCUMENT},
    "CompleteRuns": {"Mapped": text(33), "Claims": DOCUMENT, "Bytes": BYTES},
    "ReleaseClaims": {"Mapped": text(33), "Claims": DOCUMENT},
    "ListClaims": {"JobId": ID},
    "GetClock": {},
    "ResurrectJobs": {
        "Jobs": DOCUMENT, "Mask": INT, "Payload": BYTES, "PayloadHash": ascii_text(32), "Tags": text(1000), "Priority": INT,
        "WithoutKey": BIT, "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY,
    },
    "DropJobs": {"Jobs": DOCUMENT, "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY},
    "PurgeJobs": {"Jobs": DOCUMENT, "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY},
    "PreviewDLQ": {
        "Queue": NAME, "Type": NAME, "Reason": INT, "Status": INT, "Tag": text(1000), "FromMs": BIGINT, "UntilMs": BIGINT,
        "Search": text(1000), "Limit": INT,
    },
    "GetKeyHolder": {"Key": text(255)},
    "EditJob": {
        "JobId": ID, "Mask": INT, "Payload": BYTES, "PayloadHash": ascii_text(32), "Tags": text(1000), "Priority": INT,
        "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY,
    },
    "DrainWorker": {"WorkerId": ID, "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY},
    "ReadChanges": {"Jobs": DOCUMENT, "SignedOutSince": INT},
    "SignOut": {"SessionId": ascii_text(64), "RemainingMs": BIGINT},
    "ReadSeries": {"Queue": NAME, "StepSeconds": INT, "Steps": INT},
    "ListFamilies": {"Queue": NAME, "Limit": INT},
    "BrowseJobs": {
        "Pillar": ascii_text(10), "ByEnd": BIT, "Descending": BIT, "Queue": NAME, "Status": INT, "Type": NAME, "Reason": INT,
        "ErrorType": text(255), "Tag": text(1000), "Text": text(1000), "FromMs": BIGINT, "UntilMs": BIGINT, "AfterMs": BIGINT,
        "AfterId": ID_OR_EMPTY, "Limit": INT, "Look": INT,
    },
    "ReadHealth": {"Mapped": text(33), "Queues": DOCUMENT},
    "GetScaleRecommendation": {
        "Queue": NAME, "MinReplicas": INT, "MaxReplicas": INT, "TargetLagMs": BIGINT, "CatchUpMs": BIGINT, "ReplicaHandlers": INT,
        "FleetCap": INT, "BusyPercent": INT, "IdlePercent": INT, "Unit": ascii_text(10), "Explain": BIT,
    },
    "ReportCircuits": {"WorkerId": ID, "Mapped": text(33), "Circuits": DOCUMENT},
    "ReadCircuitOrders": {},
    "ListCircuits": {},
    "ListCircuitEvents": {
        "TypeKey": NAME, "Limit": INT, "AfterMs": BIGINT, "AfterId": BIGINT, "SinceMs": BIGINT, "Tries": BIT,
    },
    "ForceCircuit": {
        "TypeKey": NAME, "Forced": INT, "Actor": text(100), "Reason": text(1000), "RequestId": ID_OR_EMPTY,
    },
}  # fmt: skip

_SCHEMA = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}\Z")


class Call(NamedTuple):
    """How one procedure is called."""

    sql: str
    types: list[Type]
    widths: tuple[int, ...]
    """Columns of its result sets that this program knows."""


def check_schema_name(name: str) -> str:
    """`name`, when it may stand unquoted in SQL; else StoreMisconfigured."""
    if not _SCHEMA.match(name):
        raise StoreMisconfigured(
            f"database.schema: {name!r} is not a schema name: use letters, digits and underscores, a letter first"
        )
    return name


@cache
def calls(schema: str) -> dict[str, Call]:
    """Every procedure of a schema, ready to be called."""
    check_schema_name(schema)
    return {
        name: Call(
            " ".join(filter(None, [f"EXEC {schema}.{name}", ", ".join(f"@{parameter}=?" for parameter in parameters)])),
            list(parameters.values()),
            RESULTS[name],
        )
        for name, parameters in PROCEDURES.items()
    }
