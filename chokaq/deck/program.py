"""The process that serves The Deck: on its own (`chokaq deck`), or beside the children of a worker (`deck.enabled`)."""

import ctypes
import importlib.util
import os
import signal
import sys

import setproctitle
import structlog

from chokaq.config.errors import ConfigError
from chokaq.config.load import Loaded, with_origins
from chokaq.config.settings import Settings
from chokaq.observe.levels import take_level_signals
from chokaq.store.errors import StoreError

log = structlog.get_logger("chokaq")

NEEDED = ("nicegui", "fastapi", "argon2", "itsdangerous", "uvicorn")
"""What the extra brings."""
EXTRA = "The Deck needs packages that are not installed: pip install 'chokaq[deck]'"
_PR_SET_PDEATHSIG = 1


class DeckNotInstalled(Exception):
    """The extra is missing; the text says what to install."""


def require_extra() -> None:
    """Raises DeckNotInstalled when the extra `chokaq[deck]` is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise DeckNotInstalled(f"{EXTRA} (missing: {', '.join(missing)})")


def run_deck(loaded: Loaded) -> None:
    """Serve until told to stop. Raises DeckNotInstalled or ConfigError before anything is served."""
    require_extra()
    from chokaq.deck.serving import serve

    setproctitle.setproctitle("chokaq: deck")
    take_level_signals()
    serve(loaded)


def run_web(settings: Settings, parent_pid: int) -> int:
    """The worker's web process: right after the fork, signals blocked. Its exit code; nothing it does ends the worker."""
    setproctitle.setproctitle("chokaq: web")
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    take_level_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    if os.getppid() != parent_pid:
        return 0
    try:
        run_deck(with_origins(settings))
    except (ConfigError, DeckNotInstalled, StoreError) as error:
        sys.stderr.write(f"chokaq: The Deck cannot be served: {error}\n")
        return 1
    return 0
