"""Keeping the maintenance process alive: forked like a child, ended last, replaced whenever it dies."""

import os
import signal
from collections.abc import Callable

import structlog

from chokaq.config.settings import Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.maintenance.channel import pair
from chokaq.store.records import DeathNotice
from chokaq.supervisor.board import Board, SlotState
from chokaq.supervisor.children import Child
from chokaq.supervisor.notices import NoticeDesk
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.reload import without_level
from chokaq.supervisor.respawn import MAX_EARLY_DEATHS, Backoff
from chokaq.supervisor.spawn import MaintenanceMain, fork
from chokaq.worker.status import ExitCode

log = structlog.get_logger("chokaq")

STALL_LIMIT = 300.0
"""Seconds without a pulse after which maintenance is killed. Its loop waits for the store: far above every call's timeout."""


class MaintenanceKeeper:
    """The maintenance process of this supervisor."""

    def __init__(
        self,
        settings: Settings,
        board: Board,
        desk: NoticeDesk,
        main: MaintenanceMain,
        leave: Callable[[], None],
        *,
        database: str | None = None,
    ) -> None:
        """`database`: the name of the one it works on, `settings.database`; None: there is only one."""
        self.settings = settings
        """What the next incarnation runs with."""
        self.child: Child | None = None
        self.fatal: str | None = None
        self.given_up = False
        """It cannot boot; what is pending stays undelivered."""
        self.restarted: Callable[[str], None] = lambda _cause: None
        """Told when it has ended and is replaced: why."""
        self._running_with = settings
        self.desk = desk
        self._board = board
        self._named = {} if database is None else {"database": database}
        self._main = main
        self._leave = leave
        self._backoff = Backoff(settings.supervisor.respawn_min, settings.supervisor.respawn_max)
        self._due_at = 0.0
        self._early_deaths = 0
        self._been_ready = False
        self._replacing = False
        self._ending = False

    @property
    def due_at(self) -> float:
        """When it may be forked again."""
        return self._due_at

    def owns(self, pid: int) -> bool:
        """True for the pid of the current incarnation."""
        return self.child is not None and self.child.pid == pid

    def fill(self, now: float) -> None:
        """Fork it when it is missing and due; when all is ending, only while notices are pending."""
        if self.child is not None or self.given_up or self._due_at > now or (self._ending and not self.desk.pending):
            return
        number = self._board.take()
        if number is None:
            self._due_at = now + 1.0
            return
        ours, theirs = pair()
        slot, settings, parent = self._board.slot(number), self.settings, os.getpid()

        def leave() -> None:
            ours.close()
            self._leave()

        try:
            pid = fork(lambda: self._main(settings, theirs, slot, parent), leave)
        except OSError as error:
            self._board.give_back(number)
            ours.close()
            self._due_at = now + self._backoff.died(0.0)
            log.warning("fork_failed", child="maintenance", error=str(error), **self._named)
            return
        finally:
            theirs.close()
        name = " ".join(["maintenance", *self._named.values()])
        self.child = Child(pid=pid, slot=number, forked_at=now, name=name)
        self._running_with = settings
        log.info("maintenance_forked", pid=pid, pending_notices=self.desk.pending, **self._named)
        self.desk.attach(ours)

    def watch(self, now: float) -> None:
        """Note when it becomes ready; kill it when its loop has stood still for too long."""
        child = self.child
        if child is None:
            return
        board = self._board.read(child.slot)
        if child.ready_at is None and board.state is SlotState.READY:
            child.ready_at, self._early_deaths = now, 0
            log.info("maintenance_ready", pid=child.pid, **self._named)
        if child.ready_at is not None and now - max(board.pulse_at or 0.0, child.ready_at) > STALL_LIMIT:
            self.kill("stalled")

    def reload(self, settings: Settings) -> None:
        """New settings: the running one ends when it has carried out its notices, the next one takes over."""
        self.settings = settings
        if self.child is not None and without_level(settings) != without_level(self._running_with):
            self._replacing = True
            self.desk.ask_to_stop()

    def end(self) -> None:
        """No child is left: it ends once every notice is acknowledged."""
        self._ending = True
        self.desk.ask_to_stop()

    def kill(self, reason: str) -> None:
        """KILL; what is pending goes to the next incarnation."""
        child = self.child
        if child is not None and child.killed_for is None:
            child.killed_for = DeathCause.SHUTDOWN
            log.warning("maintenance_killed", pid=child.pid, reason=reason, **self._named)
            os.kill(child.pid, signal.SIGKILL)

    def bury(self, end: Exit, now: float) -> None:
        """It has ended. Its registry row is ended by its successor, unless it ended itself."""
        child = self.child
        if child is None:
            return
        self.child = None
        self.desk.receive()
        self.desk.detach()
        board = self._board.read(child.slot)
        self._board.give_back(child.slot)
        log.info(
            "maintenance_died",
            pid=end.pid,
            exit_code=end.code,
            signal=end.signal,
            pending_notices=self.desk.pending,
            **self._named,
        )
        clean = end.code == ExitCode.DONE
        if not clean and board.worker_id is not None and not self._ending:
            self.desk.add(_own_notice(board.worker_id, end))
        was_ready = child.ready_at is not None or board.state is SlotState.READY
        self._been_ready = self._been_ready or was_ready
        if not self._ending:
            self.restarted(self._why(child, clean=clean, was_ready=was_ready))
        if not was_ready and not clean:
            self._count_early_death(end)
        ready_for = 0.0 if child.ready_at is None else now - child.ready_at
        if clean and (self._replacing or self._ending):
            self._due_at = now
        else:
            self._due_at = now + self._backoff.died(ready_for)
        if self._replacing:
            self._replacing = False
            self.desk.ask_to_stop(wanted=self._ending)

    def _why(self, child: Child, *, clean: bool, was_ready: bool) -> str:
        if child.killed_for is not None:
            return "stall"
        if clean:
            return "reload" if self._replacing else "exit"
        return "crash" if was_ready else "boot"

    def _count_early_death(self, end: Exit) -> None:
        """Without maintenance the children still work: once it has run, a failing boot is tried again and never stops them."""
        self._early_deaths += 1
        if end.code != ExitCode.BOOT_FAILED and self._early_deaths < MAX_EARLY_DEATHS:
            return
        if self._ending:
            self.given_up = True
        elif not self._been_ready:
            self.given_up = True
            where = "".join(f" of the database {name}" for name in self._named.values())
            self.fatal = f"the maintenance process{where} cannot boot; its own message stands above"
        else:
            log.error("maintenance_cannot_boot", exit_code=end.code, signal=end.signal, **self._named)


def _own_notice(worker_id: str, end: Exit) -> DeathNotice:
    return DeathNotice(
        worker_id=worker_id,
        queue="",
        cause=DeathCause.SHUTDOWN if end.code in set(ExitCode) else DeathCause.CRASH,
        exit_code=end.code,
        signal=end.signal,
        memory_kb=end.peak_memory_kb,
    )
