"""The maintenance process: forked by the supervisor, ended last."""

import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import setproctitle
import structlog

from chokaq.config import ConfigError, load_settings
from chokaq.config.settings import Settings
from chokaq.jobs.ids import new_id
from chokaq.maintenance.link import StoreLink
from chokaq.maintenance.loop import MaintenanceLoop
from chokaq.maintenance.tally import MaintenanceTally
from chokaq.observe.levels import take_level_signals
from chokaq.observe.log import tell_repeats
from chokaq.observe.metrics import begin_process
from chokaq.observe.version import package_version
from chokaq.store.doorbell import Doorbell
from chokaq.store.errors import SchemaMismatch, StoreMisconfigured
from chokaq.store.open import open_store
from chokaq.store.records import WorkerInfo
from chokaq.worker.status import ExitCode, StatusSlot

log = structlog.get_logger("chokaq")

IGNORED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
"""A TERM to the whole group must not end the process that reports the last deaths: it ends by the supervisor's word only."""


def run_maintenance(settings: Settings, notices: socket.socket, slot: StatusSlot, parent_pid: int) -> int:
    """Run until the supervisor says stop or is gone; returns an ExitCode. Called right after the fork, signals blocked.

    It works on `settings.database` alone: of several databases each has a maintenance process of its own.
    """
    _take_signals()
    setproctitle.setproctitle(f"chokaq: maintenance {settings.here}" if settings.several else "chokaq: maintenance")
    whole = with_all_queues(settings)
    worker = WorkerInfo(
        worker_id=new_id(),
        queue="",
        host=socket.gethostname(),
        pid=os.getpid(),
        version=package_version(),
        max_workers=0,
    )
    slot.identify(worker.worker_id)
    try:
        store = open_store(settings.database, own_process=True)
        recorder = begin_process()
        tally = None if recorder is None else MaintenanceTally(recorder, settings.here)
        link = StoreLink(store, worker, tally)
        try:
            ring = Doorbell(store.identity).ring
            loop = MaintenanceLoop(whole, link, notices, slot, memory_kb=resident_kb, ring=ring, tally=tally)
            return _serve(loop, notices, parent_pid, settings.supervisor.shutdown_grace)
        finally:
            link.close()
    except (SchemaMismatch, StoreMisconfigured) as error:
        sys.stderr.write(f"chokaq: maintenance cannot start: {error}\n")
        return ExitCode.BOOT_FAILED


def _serve(loop: MaintenanceLoop, notices: socket.socket, parent_pid: int, grace: float) -> int:
    while (wait := loop.turn(time.monotonic())) is not None:
        tell_repeats()
        # The channel's end of file tells of the supervisor's death; getppid() also when a stranger holds the other end.
        if os.getppid() != parent_pid and not loop.orphaned:
            loop.orphan()
        if loop.orphaned:
            # Nobody is left to kill us if the store hangs: the kernel does it.
            _end_within(grace)
        select.select([] if loop.orphaned else [notices], [], [], wait)
    tell_repeats(all_of_them=True)
    return ExitCode.ORPHANED if loop.orphaned else ExitCode.DONE


def with_all_queues(settings: Settings, load: Callable[[Path | None], Settings] = load_settings) -> Settings:
    """The settings with every queue of their file, also those that this replica was told not to serve: the leader judges all."""
    if settings.source is None:
        return settings
    try:
        whole = load(settings.source)
    except ConfigError:
        # Broken since the start: what was read then is what counts.
        return settings
    return msgspec.structs.replace(settings, queues={**whole.queues, **settings.queues})


def resident_kb() -> int:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def _take_signals() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    take_level_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _end_within(seconds: float) -> None:
    if not signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(max(1, math.ceil(seconds)))
