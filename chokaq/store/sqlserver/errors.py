"""Sorts what an ODBC driver raises into the store's errors, by the server's number and the SQLSTATE.

The number stands only in the message text. Babelfish reports some errors under one number of its own; their text decides.
"""

import re
from collections.abc import Iterable

from chokaq.store.errors import (
    KeyContention,
    SchemaMismatch,
    StoreError,
    StoreMisconfigured,
    StoreRefused,
    StoreUnavailable,
)

_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_MISSING = re.compile(r"(procedure|relation|schema|function)\b.*does not exist|could not find stored procedure")
_NOISE = re.compile(r"\[[^\]\[]{1,60}\]\s*")

DEADLOCK = 1205
DUPLICATES = frozenset({2601, 2627})
KEY_CONTENTION = 50001
_BABELFISH = 33557097
_TRANSIENT = frozenset(
    {
        DEADLOCK,
        1222,
        -2,
        3960,
        4060,
        40197,
        40501,
        40613,
        10928,
        10929,
        49918,
        49919,
        49920,
        233,
        6005,
        10053,
        10054,
        10060,
    }
    | {10061, 17142, 9001}
)
_TRANSIENT_STATES = frozenset({"08S01", "08001", "08003", "08004", "08007", "HYT00", "HYT01", "40001", "HY117"})
_LOGIN = frozenset({18456, 18452, 18470, 18486, 18487, 18488, 18459})
_SCHEMA = frozenset({208, 2812, 201, 8144, 8145, 8146})
"""Object or procedure not found; parameters that do not fit the procedure: another version is installed."""
_BROKEN_STATES = frozenset({"08S01", "08001", "08003", "08007", "HYT00", "HYT01"})
_APPLY = "run `chokaq schema apply`"


def number(error: BaseException) -> int | None:
    """The server's error number, when the driver tells one (the last one, when there are several)."""
    found = _NUMBER.findall(_text(error))
    return int(found[-1]) if found else None


def state(error: BaseException) -> str:
    """The SQLSTATE, or an empty text."""
    return str(error.args[0]) if error.args else ""


def breaks_connection(error: BaseException) -> bool:
    """True when the connection cannot be trusted any more: a lost link, or a call given up while it was under way."""
    text = _text(error).lower()
    return state(error) in _BROKEN_STATES or "communication link" in text or "terminating connection" in text


def is_passing_race(error: BaseException) -> bool:
    """True for a deadlock victim and for two writers that inserted the same row: call again with the same arguments."""
    text = _text(error).lower()
    return number(error) in DUPLICATES | {DEADLOCK} or "deadlock detected" in text or "could not serialize" in text


def translate(error: BaseException, place: str, secrets: Iterable[str] = ()) -> StoreError:
    """The store's error for a driver's. `place`: the redacted URL; `secrets` never appear in the message."""
    text = clean(_text(error), secrets)
    lower = text.lower()
    code, sqlstate = number(error), state(error)
    if code == KEY_CONTENTION:
        return KeyContention(text)
    if code in _SCHEMA or (code == _BABELFISH and _MISSING.search(lower) is not None):
        return SchemaMismatch(f"{place}: {text}: {_APPLY}")
    if code in _LOGIN or sqlstate in {"28000", "28P01"}:
        return StoreMisconfigured(f"{place}: the login was refused: {text}: check user and password in database.url")
    if "certificate" in lower or "ssl provider" in lower:
        return StoreMisconfigured(
            f"{place}: no trusted encrypted connection: {text}: install the server's CA, or set trustservercertificate=yes "
            "(or encrypt=no on a private network) in database.url"
        )
    if sqlstate in {"IM002", "IM003"} or "can't open lib" in lower:
        return StoreMisconfigured(f"{place}: the ODBC driver cannot be loaded: {text}: check database.odbc_driver")
    if code in {229, 230} or "permission denied" in lower:
        return StoreRefused(f"{place}: {text}: grant the login one of chokaq's roles")
    if _passes(code, sqlstate, lower):
        return StoreUnavailable(f"{place}: {text}")
    return StoreRefused(f"{place}: {text}")


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """A driver's message without its bracketed prefixes and without secrets."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(_NOISE.sub("", text).split())


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
