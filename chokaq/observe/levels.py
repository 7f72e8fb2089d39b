"""The level that a process logs at, and how it is changed while the process runs.

Two signals, those that systemd has for its own level: SIGRTMIN+22 logs at debug, SIGRTMIN+23 goes back to the configured level.
Sent to the supervisor they reach all its processes; sent to one process they change that one alone.
"""

import logging
import mmap
import os
import signal
from typing import Any

import structlog

_log = structlog.get_logger("chokaq")
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_FIRST: int = getattr(signal, "SIGRTMIN", 34)
DEBUG_SIGNAL = _FIRST + 22
"""Log at debug."""
NORMAL_SIGNAL = _FIRST + 23
"""Log at the configured level."""
LEVEL_SIGNALS = (DEBUG_SIGNAL, NORMAL_SIGNAL)


_left_alone = None if structlog.is_configured() else list(structlog.get_config()["processors"])
"""What structlog does when nobody has told it anything."""


class Verbosity:
    """What a hot path asks before it puts a line together: `if verbose.debug:` costs an attribute, a filtered call some µs."""

    __slots__ = ("debug",)

    def __init__(self) -> None:
        self.debug = False
        """True when events at debug are written."""


verbose = Verbosity()


class _State:
    """Of this process's logging."""

    def __init__(self) -> None:
        self.level = "info"
        self.processors: list[Any] | None = None
        """Those that chokaq configured; another list in force is an application's own."""
        self.bridge: logging.Handler | None = None
        self.configured: mmap.mmap | None = None
        """One byte that all processes of a supervisor share: the configured level. Made before the first fork."""
        self.owner = 0


_state = _State()


def began(level: str, processors: list[Any], bridge: logging.Handler) -> None:
    """Logging has been configured; by the supervisor, for the processes it forks as well."""
    _state.processors, _state.bridge = processors, bridge
    if _state.configured is None:
        _state.configured, _state.owner = mmap.mmap(-1, 1), os.getpid()
    if _state.owner == os.getpid():
        _state.configured[0] = LEVELS[level]
    _apply(level)


def is_heard() -> bool:
    """True when somebody has configured where log lines go: chokaq, or the application.

    What runs in programs that are not ours asks first: structlog left to itself would write to their standard output.
    """
    return bool(structlog.get_config()["processors"] != _left_alone)


def configured_level() -> str:
    """The level to go back to."""
    number = _state.configured[0] if _state.configured is not None else LEVELS["info"]
    return next(name for name, value in LEVELS.items() if value == number)


def configure_level(level: str) -> None:
    """The configuration names another level: for this process now, and for those it has forked, once NORMAL_SIGNAL reaches them."""
    if _state.configured is not None:
        _state.configured[0] = LEVELS[level]
    set_level(level)


def set_level(level: str) -> None:
    """Log at this level from now on: chokaq, the application's structlog, and the standard library's loggers below ours.

    An application that has configured structlog itself keeps its own filter; chokaq's debug events then pass it or not.
    """
    before = _state.level
    if level == before:
        return
    finer = min(level, before, key=LEVELS.__getitem__)
    if finer == level:
        _apply(level)
    _log.info("log_level_changed", level_now=level, level_before=before, pid=os.getpid())
    _apply(level)


def on_level_signal(number: int, _frame: object = None) -> None:
    """What a process does with one of the two signals."""
    set_level("debug" if number == DEBUG_SIGNAL else configured_level())


def take_level_signals() -> None:
    """Obey the two signals in this process. Call it in the main thread, before signals are unblocked."""
    for number in LEVEL_SIGNALS:
        signal.signal(number, on_level_signal)
        # A driver's call in another thread need not see it.
        signal.siginterrupt(number, False)


def signal_name(number: int) -> str:
    """SIGHUP, SIGRTMIN+22 …"""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - _FIRST}"


def _apply(level: str) -> None:
    _state.level = level
    verbose.debug = LEVELS[level] <= LEVELS["debug"]
    if structlog.get_config()["processors"] is _state.processors:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]))
    root = logging.getLogger()
    if _state.bridge is not None and _state.bridge in root.handlers:
        root.setLevel(LEVELS[level])
