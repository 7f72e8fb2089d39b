"""Logging: structlog events, one line each, on stderr; for people or as JSON; without secrets."""

import logging
import os
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from datetime import datetime
from typing import Any, cast

import structlog

from chokaq.observe import levels
from chokaq.observe.events import EVENTS
from chokaq.observe.folding import Folding, is_ours
from chokaq.observe.redact import RedactEvent
from chokaq.observe.running import job_fields

REPEATS = 20
"""Lines a minute of one event that are alike; further ones are folded into one."""


class _Current:
    folding: Folding | None = None


def configure_logging(
    level: str = "info",
    format: str = "console",  # noqa: A002 - the setting's own name
    redact: Sequence[str] = (),
    repeats: int | None = REPEATS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Send structlog and the standard library's logging to stderr.

    `level`: debug, info, warning, error or critical. `format`: `console` (local time, for people) or `json` (UTC).
    `redact`: patterns of secrets that become *** in every line, beside the passwords that always do. `repeats`: so many lines a
    minute of one event of ours that are alike are written, the rest is counted (None: all are written); `clock`: for that, in
    seconds. May be called again, also after a fork: a line is one write, and nothing but the counts of repeats is kept.
    """
    as_json = format == "json"
    _Current.folding = Folding(repeats, clock)
    chain: list[Any] = [
        _Current.folding,
        structlog.contextvars.merge_contextvars,
        job_fields,
        event_number,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time") if as_json else _local_time,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        RedactEvent(redact),
        *(_json_processors() if as_json else [_console_renderer()]),
    ]
    structlog.configure(processors=chain, logger_factory=_Stderr, cache_logger_on_first_use=False)
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Bridge)]:
        root.removeHandler(handler)
    bridge = _Bridge()
    if not root.handlers:
        root.addHandler(bridge)
    levels.began(level, chain, bridge)


def tell_repeats(*, all_of_them: bool = False) -> None:
    """Write what was folded in minutes that are over; `all_of_them`: and in the present one, since the process ends.

    Loops call it when they turn: without further events nobody else would.
    """
    folding = _Current.folding
    if folding is not None:
        if all_of_them:
            folding.flush()
        else:
            folding.tick()


def event_number(logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: adds `event_id` to chokaq's own events (chokaq.observe.events)."""
    if is_ours(logger) and (known := EVENTS.get(event["event"])) is not None:
        event["event_id"] = known.number
    return event


def _local_time(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = datetime.now().astimezone().isoformat(sep=" ", timespec="milliseconds")
    return event


def _json_processors() -> list[structlog.typing.Processor]:
    return [
        structlog.processors.EventRenamer("event"),
        structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
    ]


def _console_renderer() -> structlog.typing.Processor:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        pad_event_to=28,
        exception_formatter=structlog.dev.plain_traceback,
    )


class _Stderr:
    """Writes a line with one call, so that lines of several processes do not mix."""

    def __init__(self, name: object = None, *_args: object) -> None:
        self.name = name
        """As given to `structlog.get_logger`; `chokaq` for our own events."""

    def msg(self, line: str) -> None:
        """Write one event; a stderr that is gone or full is no reason to fail."""
        try:
            descriptor = sys.stderr.fileno()
        except (OSError, ValueError, AttributeError):
            descriptor = -1
        try:
            if descriptor < 0:
                sys.stderr.write(line + "\n")
            else:
                os.write(descriptor, (line + "\n").encode("utf-8", "backslashreplace"))
        except (OSError, ValueError, AttributeError):
            return

    debug = info = warning = warn = error = critical = fatal = exception = log = msg


class _Bridge(logging.Handler):
    """Hands what libraries log through the standard library to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a library's broken format string
            message = str(record.msg)
        logger = cast("structlog.typing.FilteringBoundLogger", structlog.get_logger())
        context: dict[str, Any] = {"logger": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            context["exc_info"] = record.exc_info
        logger.log(max(10, record.levelno // 10 * 10), message, **context)
