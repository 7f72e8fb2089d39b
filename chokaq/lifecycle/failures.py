"""What a handler's exception means: fatal, throttled or transient (design §8); and how much of its text is kept."""

import json
import math
import traceback
from collections.abc import Callable
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


FATAL = Verdict(Kind.FATAL)
TRANSIENT = Verdict(Kind.TRANSIENT)

Said = Callable[[BaseException], Verdict | None]
"""What an application says of one exception of a chain; None: nothing."""


def classify(error: BaseException) -> Verdict:
    """Judge an exception by the built-in rules alone."""
    return judge(error)


def judge(error: BaseException, said: Said | None = None) -> Verdict:
    """Judge an exception: from the outside in (itself, its cause, that one's cause …) the first recognised class decides.

    At each link the application speaks first (`said`), then the built-in rules. A group is fatal only when all its leaves are,
    throttled when one of them is, else transient. What holds nothing recognised is transient.
    """
    return _walk(error, set(), said) or TRANSIENT


def _walk(error: BaseException, seen: set[int], said: Said | None) -> Verdict | None:
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        verdict = None if said is None else said(link)
        if verdict is None:
            verdict = _of_group(link, seen, said) if isinstance(link, BaseExceptionGroup) else recognise(link)
        if verdict is not None:
            return verdict
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def recognise(error: BaseException) -> Verdict | None:
    """The built-in rules, on one exception; None: it says nothing by itself."""
    if isinstance(error, FatalError):
        return FATAL
    if isinstance(error, Throttled):
        return Verdict(Kind.THROTTLED, seconds(error.retry_after))
    if isinstance(error, _PASSING):
        return TRANSIENT
    if isinstance(error, _PROGRAMMING) or type(error) is ValueError:
        return FATAL
    return None


def _of_group(group: BaseExceptionGroup[BaseException], seen: set[int], said: Said | None) -> Verdict:
    verdicts = [_walk(leaf, seen, said) or TRANSIENT for leaf in group.exceptions]
    if all(verdict.kind is Kind.FATAL for verdict in verdicts):
        return FATAL
    waits = [verdict.retry_after or 0.0 for verdict in verdicts if verdict.kind is Kind.THROTTLED]
    return Verdict(Kind.THROTTLED, max(waits) or None) if waits else TRANSIENT


def seconds(value: object) -> float | None:
    """A number of seconds somebody asked for, at least 0; None: it is none."""
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return max(0.0, float(value))


@dataclass(frozen=True, slots=True)
class ErrorText:
    """What an attempt leaves behind, within the limits above and free of NUL and lone surrogates."""

    type: str
    message: str
    trace: str | None


def describe(error: BaseException, clean: Callable[[str], str] | None = None) -> ErrorText:
    """Put an exception into words that can always be stored (C45). Never raises, whatever the exception's `__str__` does.

    `clean` takes secrets out; it sees the whole texts, since half a secret would not look like one.
    """
    trace = _trace(error)
    texts = [error_name(type(error)), _message(error), trace or ""]
    if clean is not None:
        texts = [_cleaned(text, clean) for text in texts]
    kind, message, lines = texts
    return ErrorText(
        type=cut(kind, TYPE_LIMIT),
        message=cut(message, MESSAGE_LIMIT),
        trace=None if trace is None else cut(lines, TRACE_LIMIT, _TRACE_HEAD),
    )


def _cleaned(text: str, clean: Callable[[str], str]) -> str:
    try:
        return clean(text)
    except Exception as error:  # noqa: BLE001 - rather no text than one that may hold a secret
        return f"(its text could not be searched for secrets: {type(error).__name__})"


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


def error_name(kind: type) -> str:
    """An exception's class as it is shown and counted: with its module, unless it is Python's own."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the exception's own code
        return "(its text could not be made)"


def _trace(error: BaseException) -> str | None:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - the exception's own code
        return None
