"""`run`: what `chokaq worker` calls."""

import os
import sys

import setproctitle
import structlog

from chokaq.config.settings import Settings
from chokaq.supervisor.arbiter import Arbiter
from chokaq.supervisor.exits import ProgramExit
from chokaq.supervisor.spawn import Entries, load_entries, preload

log = structlog.get_logger("chokaq")


def run(settings: Settings, *, entries: Entries | None = None) -> int:
    """Run children for every queue of `settings`, and maintenance, until told to stop.

    Call it from the main thread of a process that has opened no connection and started no thread. Returns the exit code of
    the program (chokaq.supervisor.exits). `entries` puts other code into the processes, for tests. What the application's code
    says of policies has to be in `settings` (chokaq.config.load_worker_settings); a reload and a rolling restart see to it anew.

    Signals: TERM and INT drain within `supervisor.shutdown_grace`, a second one at least 1 s later kills; HUP reloads the
    file the settings came from (not to another database, nor a queue to another one: that needs a restart); USR2 replaces
    every child, one at a time; TTIN adds a process to the queue with the most work per process, TTOU takes one from the queue
    with the least that has more than one; RTMIN+22 makes every process log at debug, RTMIN+23 at the configured level again.
    """
    if not settings.queues:
        sys.stderr.write("chokaq: no queue is configured: name at least one under `queues:` in chokaq.yaml\n")
        return int(ProgramExit.BOOT_FAILED)
    setproctitle.setproctitle("chokaq: supervisor")
    chosen = entries if entries is not None else load_entries()
    preload(settings)
    log.debug("preloaded", pid=os.getpid())
    return Arbiter(settings, chosen).run()
