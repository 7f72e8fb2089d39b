"""Forking: heavy imports once in the parent, then children that start small and share their pages."""

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from socket import socket
from typing import NamedTuple, Protocol

import setproctitle
import structlog

from chokaq.config.settings import QueueSettings, Settings
from chokaq.supervisor.board import Board
from chokaq.supervisor.bulletin import Bulletin
from chokaq.supervisor.exits import ProgramExit
from chokaq.supervisor.signals import blocked
from chokaq.worker.status import StatusSlot

log = structlog.get_logger("chokaq")


class ChildMain(Protocol):
    """What a queue's child runs; returns its exit code. Signals are still blocked when it is called."""

    def __call__(
        self, settings: Settings, queue: QueueSettings, index: int, slot: StatusSlot, parent_pid: int
    ) -> int: ...


class MaintenanceMain(Protocol):
    """What the maintenance process runs; returns its exit code. Signals are still blocked when it is called."""

    def __call__(self, settings: Settings, notices: socket, slot: StatusSlot, parent_pid: int) -> int: ...


class WebMain(Protocol):
    """What the process of The Deck runs; returns its exit code. Signals are still blocked when it is called."""

    def __call__(self, settings: Settings, parent_pid: int) -> int: ...


def run_no_web(settings: Settings, parent_pid: int) -> int:
    """For tests that have no web process."""
    del settings, parent_pid
    return 0


class ProbesMain(Protocol):
    """What the process that answers probes runs; returns its exit code. Signals are still blocked when it is called."""

    def __call__(
        self, settings: Settings, board: Board, bulletin: Bulletin, listening: socket, parent_pid: int
    ) -> int: ...


def run_no_probes(settings: Settings, board: Board, bulletin: Bulletin, listening: socket, parent_pid: int) -> int:
    """For tests that answer no probes."""
    del settings, board, bulletin, listening, parent_pid
    return 0


class Entries(NamedTuple):
    """The code of the processes that a supervisor forks."""

    child: ChildMain
    maintenance: MaintenanceMain
    web: WebMain = run_no_web
    probes: ProbesMain = run_no_probes


def load_entries() -> Entries:
    """Import what children run. No user code, and no connection: only modules."""
    from chokaq.deck.program import run_web
    from chokaq.maintenance.process import run_maintenance
    from chokaq.supervisor.probes.process import run_probes
    from chokaq.worker.child import run_child

    return Entries(run_child, run_maintenance, run_web, run_probes)


def preload(settings: Settings) -> None:
    """Import what every child needs anyway, so that its pages are shared, and keep the collector from touching them.

    pyodbc is only imported: it makes its first ODBC handle when it first connects, which happens after the fork.
    """
    databases = settings.named_databases.values()
    drivers = {"sqlserver" if one.url.startswith("mssql") else "sqlite" for one in databases}
    stores = [f"chokaq.store.{driver}" for driver in sorted(drivers)]
    for module in ("uvloop", "asyncio", "concurrent.futures.thread", "chokaq.app", *stores):
        try:
            importlib.import_module(module)
        except ImportError:
            # A missing library is the child's to report, with a message that names the way out.
            continue
    gc.collect()
    gc.freeze()


def fork(main: Callable[[], int], leave: Callable[[], None]) -> int:
    """Fork a child that runs `main` and ends with its result; returns the pid in the parent.

    `leave` closes, in the child, what belongs to the supervisor only. The child never returns from here.
    Raises OSError when the host gives no more processes.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with blocked():
        pid = os.fork()
        if pid == 0:
            _become_child(main, leave)
    return pid


def _tell_crash(error: BaseException) -> None:
    try:
        log.error("loop_crashed", process=setproctitle.getproctitle(), pid=os.getpid(), exc_info=error)
    except Exception:  # noqa: BLE001 - an application's own logging may be what is broken
        traceback.print_exception(error)


def _become_child(main: Callable[[], int], leave: Callable[[], None]) -> None:
    code: int = ProgramExit.INTERNAL
    try:
        leave()
        code = int(main())
    except BaseException as error:  # noqa: BLE001 - whatever it is, the child must not run on into the parent's loop
        _tell_crash(error)
    finally:
        # No interpreter shutdown: exit handlers and objects inherited from the parent are the parent's.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(code)
