"""What a freshly forked child does before its loop: signals, parent, title, the application, the store."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import setproctitle

from chokaq.config import ConfigError, load_app
from chokaq.config.settings import QueueSettings, Settings
from chokaq.jobs.ids import new_id
from chokaq.observe.levels import take_level_signals
from chokaq.observe.version import package_version
from chokaq.store.errors import StoreError
from chokaq.store.open import open_store
from chokaq.store.protocol import Store
from chokaq.store.records import WorkerInfo
from chokaq.worker.orphan import terminate_with_parent

_SHARED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE)
"""Signals that a terminal or an operator may send to the whole group and that mean something to the supervisor only."""


class BootError(Exception):
    """The child cannot work, and would not if it were started again. The text is one line that names the way out."""


def become_child(title: str, parent_pid: int, stop: Callable[[], None]) -> bool:
    """Shed what was the parent's: handlers, wakeup descriptor, title. False when the parent has died meanwhile.

    `stop` answers TERM and INT until the loop takes them over. Signals are unblocked last.
    """
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in _SHARED:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop())
    take_level_signals()
    terminate_with_parent()
    setproctitle.setproctitle(title)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return os.getppid() == parent_pid


def import_app(settings: Settings) -> Any:
    """The application, bound to these settings. Raises BootError.

    What its code says of policies is read from the code that was just imported, not from what the supervisor once found there.
    """
    if settings.app is None:
        raise BootError("app: names no application; set it to package.module:attribute of your ChokaQ object")
    try:
        app = load_app(settings.app, settings.source.parent if settings.source is not None else None)
        app.bind(msgspec.structs.replace(settings, registered={}))
    except ConfigError as error:
        raise BootError(one_line(error)) from error
    return app


def choose_store(settings: Settings, queue: str) -> Store:
    """The store that the queue lives in; opens nothing yet. Raises BootError."""
    try:
        return open_store(settings.database_of(queue), own_process=True)
    except StoreError as error:
        raise BootError(one_line(error)) from error


def worker_info(queue: QueueSettings) -> WorkerInfo:
    """This incarnation of a child: a new id at every boot."""
    return WorkerInfo(
        worker_id=new_id(),
        queue=queue.name,
        host=socket.gethostname().encode("ascii", "replace").decode()[:255] or "unknown",
        pid=os.getpid(),
        version=package_version(),
        max_workers=queue.max_workers,
    )


def one_line(error: BaseException) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def complain(title: str, message: str) -> None:
    """Say why the child cannot boot: one line on stderr, one write."""
    sys.stderr.write(f"{title}: {message}\n")
    sys.stderr.flush()
