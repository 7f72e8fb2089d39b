"""Forks one child as the supervisor does and waits for it: `parent.py DATABASE APP GRACE`; prints the child's pid first."""

import os
import signal
import sys

from chokaq.config.settings import Policy, QueueSettings, Settings, SupervisorSettings
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Held
from chokaq.worker.child import run_child


class Slot:
    """Says `ready` and `draining` on stdout."""

    runners = 1_024

    def identify(self, worker_id: str) -> None: ...

    def progress(self) -> None: ...

    def ready(self) -> None:
        print("ready", flush=True)

    def pulse(self, **figures: int) -> None: ...

    def begin(self, runner: int, job: Held, hard_deadline: float) -> None: ...

    def end(self, runner: int) -> None: ...

    def reaches_store(self, reachable: bool) -> None: ...

    def in_a_hurry(self) -> bool:
        return True

    def draining(self) -> None:
        print("draining", flush=True)

    def ask_replacement(self) -> None: ...


def main() -> int:
    """Fork, wait, print how it ended."""
    url, app, grace = sys.argv[1:4]
    queue = QueueSettings(name="notes", max_workers=2, heartbeat=0.2, policy=Policy(retry_base_delay=0.01))
    settings = Settings(
        app=app,
        database=DatabaseSettings(url=url),
        queues={"notes": queue},
        supervisor=SupervisorSettings(shutdown_grace=float(grace)),
    )
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.signal(signal.SIGHUP, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = run_child(settings, queue, 0, Slot(), parent)
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    print("exit", os.waitstatus_to_exitcode(status), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
