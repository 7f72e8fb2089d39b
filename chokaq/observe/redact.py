"""Takes secrets out of what is logged or printed."""

import re
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

HIDDEN = "***"
_OURS = frozenset({"level", "time", "timestamp"})
"""What the logging itself puts into an event: no pattern may spoil it."""

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pwd$|secret|token|api_?key|authorization|credential|private_?key|connection_?string",
    re.IGNORECASE,
)
_URL = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:/?#@]*):[^\s'\"]*@", re.IGNORECASE)
_PAIR = re.compile(
    r"(?P<head>\b(?:pwd|password|passwd|secret|token|access_?token|api_?key)\s*=\s*)(?:\{[^}]*\}|[^\s;&,'\"]+)",
    re.IGNORECASE,
)


def redact_text(text: str) -> str:
    """The text without the passwords of URLs and of `PWD=…` pairs."""
    if "://" in text:
        text = _URL.sub(rf"\g<head>:{HIDDEN}@", text)
    return _PAIR.sub(rf"\g<head>{HIDDEN}", text) if "=" in text else text


class Redactor:
    """Takes secrets out of texts that are going to be stored: those `redact_text` knows, and what further patterns match."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """`patterns`: regular expressions (the setting `redact`). Raises re.error when one is none."""
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def __call__(self, text: str) -> str:
        """The text with *** for every secret."""
        text = redact_text(text)
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text


def redact(value: Any, clean: Callable[[str], str] = redact_text) -> Any:
    """The value without secrets: texts, what mappings and sequences hold, and the text of any other object that shows one.

    `clean` takes them out of a text.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return clean(value)
        case dict():
            return {key: HIDDEN if is_secret(key, item) else redact(item, clean) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redact(item, clean) for item in value]
        case _:
            shown = _shown(value)
            return value if clean(shown) == shown else clean(shown)


def is_secret(key: object, value: object) -> bool:
    """True when the text that stands under this key is a secret; a number (`tokens=35`) is none."""
    return isinstance(value, str | bytes) and isinstance(key, str) and _SECRET_KEY.search(key) is not None


def _shown(value: object) -> str:
    """How an object looks in a log line."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - an object that cannot be shown must not cost the line
        return ""


class RedactEvent:
    """structlog processor: the event without secrets, its traceback included. Stands behind whatever formats that."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """`patterns`: as for `Redactor`."""
        self._clean = Redactor(patterns)

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Called by structlog."""
        for key, value in event.items():
            if key not in _OURS:
                event[key] = HIDDEN if is_secret(key, value) else redact(value, self._clean)
        return event
