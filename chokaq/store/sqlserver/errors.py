"""Sorts what an ODBC driver raises into the store's errors, by the server's number and the SQLSTATE.

The number stands only in the message text. Babelfish reports some errors under one number of its own; their text decides.
"""

import re
from collections.abc import Iterable

from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import (
    KeyContention,
    SchemaMismatch,
    StoreConflict,
    StoreError,
    StoreMisconfigured,
    StoreRefused,
    StoreUnavailable,
)

_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_STATE = re.compile("[A-Z0-9]{5}")
_MISSING = re.compile(r"(procedure|relation|schema|function)\b.*does not exist|could not find stored procedure")
_NOISE = re.compile(r"\[[^\]\[]{1,60}\]\s*")

DEADLOCK = 1205
DUPLICATES = frozenset({2601, 2627})
KEY_CONTENTION = 50001
_KILLED = 596
_READ_ONLY = 3906
"""A write on a database that is read-only here: after a failover, the connection leads to what is a secondary now."""
_BABELFISH = 33557097
_TRANSIENT = frozenset(
    {DEADLOCK, 1222, -2, 3960, 4060, 40197, 40501, 40613, 10928, 10929, 49918, 49919, 49920, 233, 6005, 10053, 10054}
    | {10060, 10061, 17142, 9001}
)
"""Known to pass. A number that stands nowhere in this module passes too: see `_is_lasting`."""
_TRANSIENT_STATES = frozenset({"08S01", "08001", "08003", "08004", "08007", "HYT00", "HYT01", "40001", "HY117"})
_DATABASE_AWAY = frozenset({4060, 40613, 40197, 40501, 983, 976, 978, 921, 922, 927, 18401})
"""A database that recovers, fails over or starts: the driver reports it as a refused login, with this number behind."""
_LASTING = frozenset(
    {220, 232, 241, 242, 245, 248, 257, 260, 293, 295, 296, 515, 517, 529, 547, 2628, 8114, 8115, 8134, 8152, 8169, 207}
    | {229, 230, 262, 297, 300, 4104, 9420}
    | set(range(100, 200))
    | set(range(13600, 13620))
)
"""What no repeat mends: values that do not fit, missing rights, text the server does not understand."""
_OWN = range(50000, 51000)
"""Errors the procedures throw themselves."""
_NO_DATABASE = 911
_LOGIN = frozenset({18456, 18452, 18470, 18486, 18487, 18488, 18459})
_SCHEMA = frozenset({208, 2812, 201, 8144, 8145, 8146})
"""Object or procedure not found; parameters that do not fit the procedure: another version is installed."""
_BROKEN_STATES = frozenset({"08S01", "08001", "08003", "08007", "HYT00", "HYT01", "HY000", "HY010"})
_RECONNECT_FAILED = "IMC"
"""Driver 18 tried to mend a broken link by itself and could not: IMC01 … IMC06."""
_DAMAGED = (
    "pfree called with",
    "deleted while still in use",
    "could not find pg_class",
    "cache lookup failed",
    "data is corrupt",
)
"""What Babelfish says when a session's own memory is damaged: seen after calls that had to wait for rows which another session
was changing. It says nothing about the job at hand, and another connection knows nothing of it."""
_UNTRUSTED = ("certificate", "unsupported protocol", "wrong version number", "encryption not supported")
_APPLY = "run `chokaq schema apply`"


def number(error: BaseException) -> int | None:
    """The server's error number, when the driver tells one (the last one, when there are several)."""
    found = _numbers(error)
    return found[-1] if found else None


def state(error: BaseException) -> str:
    """The SQLSTATE, or an empty text."""
    return str(error.args[0]) if error.args else ""


def breaks_connection(error: BaseException) -> bool:
    """True when the connection cannot be trusted any more: a lost link, or a call given up while it was under way."""
    text, sqlstate = _text(error).lower(), state(error)
    return (
        sqlstate in _BROKEN_STATES
        or sqlstate.startswith(_RECONNECT_FAILED)
        or number(error) in (_KILLED, _READ_ONLY)
        or "communication link" in text
        or "terminating connection" in text
        or _is_damaged(error)
    )


def is_passing_race(error: BaseException) -> bool:
    """True for a deadlock victim and for two writers that inserted the same row: call again with the same arguments."""
    text = _text(error).lower()
    return number(error) in DUPLICATES | {DEADLOCK} or "deadlock detected" in text or "could not serialize" in text


def reported(code: int, text: str) -> Exception:
    """An error that a procedure told as a row, in the form in which the driver would have raised it."""
    return Exception("42000", f"{text} ({code}) (SQLExecute)")


def translate(error: BaseException, place: str, secrets: Iterable[str] = ()) -> StoreError:
    """The store's error for a driver's. `place`: the redacted URL; `secrets` never appear in the message."""
    found = _translated(error, place, secrets)
    found.number = name(error)
    sql.failed(found.number)
    return found


def name(error: BaseException) -> str:
    """The server's error number as text, else the SQLSTATE."""
    code = number(error)
    if code:
        return str(code)
    return state(error) if _STATE.fullmatch(state(error)) else ""


def _translated(error: BaseException, place: str, secrets: Iterable[str]) -> StoreError:
    text = clean(_text(error), secrets)
    lower = text.lower()
    code, sqlstate = number(error), state(error)
    if code == KEY_CONTENTION:
        return KeyContention(text)
    if code in _SCHEMA or (code == _BABELFISH and _MISSING.search(lower) is not None):
        return SchemaMismatch(f"{place}: {text}: {_APPLY}")
    if sqlstate.startswith(_RECONNECT_FAILED) or not _DATABASE_AWAY.isdisjoint(_numbers(error)):
        return StoreUnavailable(f"{place}: {text}")
    if code in _LOGIN or sqlstate in {"28000", "28P01"}:
        return StoreMisconfigured(f"{place}: the login was refused: {text}: check user and password in database.url")
    if code == _NO_DATABASE:
        return StoreMisconfigured(f"{place}: {text}: create the database, or correct its name in database.url")
    if any(words in _text(error).lower() for words in _UNTRUSTED):
        return StoreMisconfigured(
            f"{place}: no trusted encrypted connection: {text}: install the server's CA, or set trustservercertificate=yes "
            "(or encrypt=no on a private network) in database.url"
        )
    if sqlstate in {"IM002", "IM003"} or "can't open lib" in lower:
        return StoreMisconfigured(f"{place}: the ODBC driver cannot be loaded: {text}: check database.odbc_driver")
    if code in {229, 230} or "permission denied" in lower:
        return StoreRefused(f"{place}: {text}: grant the login one of chokaq's roles")
    if code in DUPLICATES:
        return StoreConflict(f"{place}: {text}")
    if _is_lasting(code, sqlstate) and not (_passes(code, sqlstate, lower) or _is_damaged(error)):
        return StoreRefused(f"{place}: {text}")
    return StoreUnavailable(f"{place}: {text}")


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """A driver's message without its bracketed prefixes and without secrets."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(_NOISE.sub("", text).split())


def _is_lasting(code: int | None, sqlstate: str) -> bool:
    """True for what no repeat mends. The unknown is not: a full log, a failover or a killed session (9002, 1105, 701, 596 …) must
    never make a job that has succeeded look like one the store refuses to hold."""
    if code is None or code == 0:
        return sqlstate[:2] in {"07", "22", "IM"} or sqlstate in {"HY004", "HY090", "HY104", "HY105", "HYC00", "HY003"}
    return code in _LASTING or code in _OWN or code == _BABELFISH or sqlstate[:2] == "22"


def _is_damaged(error: BaseException) -> bool:
    text = _text(error).lower()
    return number(error) == _BABELFISH and any(words in text for words in _DAMAGED)


def _numbers(error: BaseException) -> list[int]:
    return [int(found) for found in _NUMBER.findall(_text(error))]


def _passes(code: int | None, sqlstate: str, text: str) -> bool:
    if code in _TRANSIENT or code in DUPLICATES or sqlstate in _TRANSIENT_STATES:
        return True
    return any(
        words in text
        for words in (
            "lock timeout",
            "deadlock detected",
            "could not serialize",
            "terminating connection",
            "the database system is",
            "too many clients",
            "communication link",
        )
    )


def _text(error: BaseException) -> str:
    return str(error.args[1]) if len(error.args) > 1 else str(error)
