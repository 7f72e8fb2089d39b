"""What a handler's exception means: fatal, throttled or transient (design §8); and how much of its text is kept."""

import json
import math
import traceback
from dataclasses import dataclass
from enum import Enum

from chokaq.lifecycle.errors import FatalError, Throttled

TYPE_LIMIT = 255
MESSAGE_LIMIT = 4_000
TRACE_LIMIT = 16_000
"""Limits of an attempt's record, in UTF-16 units: what the server's columns count."""

_TRACE_HEAD = 3_000
"""Of a trace that is cut, this much of its beginning is kept; the rest is its end, which names the culprit."""

_PASSING = (OSError, TimeoutError, UnicodeError, json.JSONDecodeError)
"""Trouble with the world or with what it sent. They win over ValueError, which several of them also are."""
_PROGRAMMING = (TypeError, AttributeError, NameError, NotImplementedError)
"""Another attempt runs the same code and reaches the same line."""


class Kind(Enum):
    """What another attempt could achieve."""

    FATAL = "fatal"
    """Nothing: to the DLQ at once."""
    THROTTLED = "throttled"
    """A dependency asked for patience."""
    TRANSIENT = "transient"
    """Perhaps everything."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The classification of one exception."""

    kind: Kind
    retry_after: float | None = None
    """Seconds a throttling dependency asked for (≥ 0, may be inf: the policy caps it); None: the ordinary backoff."""


_FATAL = Verdict(Kind.FATAL)
_TRANSIENT = Verdict(Kind.TRANSIENT)


def classify(error: BaseException) -> Verdict:
    """Judge an exception: from the outside in (itself, its cause, that one's cause …) the first recognised class decides.

    A group is fatal only when all its leaves are, throttled when one of them is, else transient. What holds nothing
    recognised is transient.
    """
    return _judge(error, set()) or _TRANSIENT


def _judge(error: BaseException, seen: set[int]) -> Verdict | None:
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        verdict = _judge_group(link, seen) if isinstance(link, BaseExceptionGroup) else _recognise(link)
        if verdict is not None:
            return verdict
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def _recognise(error: BaseException) -> Verdict | None:
    if isinstance(error, FatalError):
        return _FATAL
    if isinstance(error, Throttled):
        return Verdict(Kind.THROTTLED, _seconds(error.retry_after))
    if isinstance(error, _PASSING):
        return _TRANSIENT
    if isinstance(error, _PROGRAMMING) or type(error) is ValueError:
        return _FATAL
    return None


def _judge_group(group: BaseExceptionGroup[BaseException], seen: set[int]) -> Verdict:
    verdicts = [_judge(leaf, seen) or _TRANSIENT for leaf in group.exceptions]
    if all(verdict.kind is Kind.FATAL for verdict in verdicts):
        return _FATAL
    waits = [verdict.retry_after or 0.0 for verdict in verdicts if verdict.kind is Kind.THROTTLED]
    return Verdict(Kind.THROTTLED, max(waits) or None) if waits else _TRANSIENT


def _seconds(value: object) -> float | None:
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return max(0.0, float(value))


@dataclass(frozen=True, slots=True)
class ErrorText:
    """What an attempt leaves behind, within the limits above and free of NUL and lone surrogates."""

    type: str
    message: str
    trace: str | None


def describe(error: BaseException) -> ErrorText:
    """Put an exception into words that can always be stored (C45). Never raises, whatever the exception's `__str__` does."""
    return ErrorText(
        type=cut(_name(type(error)), TYPE_LIMIT), message=cut(_message(error), MESSAGE_LIMIT), trace=_trace(error)
    )


def cut(text: str, limit: int, head: int | None = None) -> str:
    """Text of at most `limit` UTF-16 units, storable everywhere; when shortened, `head` units stay in front of the mark."""
    clean = text.encode("utf-16-le", "backslashreplace").decode("utf-16-le") if not text.isascii() else text
    clean = clean.replace("\0", "\u2400")
    if len(clean) * 2 <= limit or _units(clean) <= limit:
        return clean
    mark = "…" if head is None else "\n… cut …\n"
    room = limit - len(mark)
    front = room if head is None else min(head, room)
    return _first(clean, front) + mark + _last(clean, room - front)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _first(text: str, units: int) -> str:
    return text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore")


def _last(text: str, units: int) -> str:
    data = text.encode("utf-16-le")
    kept = data[len(data) - 2 * units :] if units else b""
    # A pair cut in half leaves its low surrogate in front.
    if kept and 0xDC <= kept[1] <= 0xDF:
        kept = kept[2:]
    return kept.decode("utf-16-le")


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the exception's own code
        return "(its text could not be made)"


def _trace(error: BaseException) -> str | None:
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - the exception's own code
        return None
    return cut(text, TRACE_LIMIT, _TRACE_HEAD)
