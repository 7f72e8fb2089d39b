"""Takes secrets out of what is logged or printed."""

import re
from collections.abc import MutableMapping
from typing import Any

HIDDEN = "***"

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


def redact(value: Any) -> Any:
    """The value without secrets: texts, and what mappings and sequences hold; anything else as it is."""
    match value:
        case str():
            return redact_text(value)
        case dict():
            return {key: HIDDEN if is_secret(key, item) else redact(item) for key, item in value.items()}
        case list() | tuple():
            return [redact(item) for item in value]
        case _:
            return value


def is_secret(key: object, value: object) -> bool:
    """True when the text that stands under this key is a secret; a number (`tokens=35`) is none."""
    return isinstance(value, str | bytes) and isinstance(key, str) and _SECRET_KEY.search(key) is not None


def redact_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: the event without secrets."""
    for key, value in event.items():
        event[key] = HIDDEN if is_secret(key, value) else redact(value)
    return event
