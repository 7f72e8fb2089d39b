"""The maintenance processes of one supervisor: one for each database that a queue of it lives in."""

import socket
from collections.abc import Callable, Iterator

from chokaq.config.settings import Settings
from chokaq.store.records import DeathNotice
from chokaq.supervisor.board import Board
from chokaq.supervisor.keeper import MaintenanceKeeper
from chokaq.supervisor.notices import NoticeDesk
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.spawn import MaintenanceMain


class Keepers:
    """Keeps them alive and gives each of them the deaths in its database. None depends on another: one database may be away."""

    def __init__(self, settings: Settings, board: Board, main: MaintenanceMain, leave: Callable[[], None]) -> None:
        self._board = board
        self._main = main
        self._leave = leave
        self._kept: dict[str, MaintenanceKeeper] = {}
        self.restarted: Callable[[str], None] = lambda _cause: None
        """Told when one has ended and is replaced: why."""
        self._open(settings)

    def _open(self, settings: Settings) -> None:
        """One for every database that has none yet; one whose last queue is gone stays until the end of the program."""
        served = [settings.database_name(queue) for queue in settings.queues] or [settings.default_database]
        for name in served:
            if name not in self._kept:
                self._kept[name] = MaintenanceKeeper(
                    settings.at(name),
                    self._board,
                    NoticeDesk(),
                    self._main,
                    self._leave,
                    database=name if settings.several else None,
                )
                self._kept[name].restarted = self._restarted

    def _restarted(self, cause: str) -> None:
        self.restarted(cause)

    # ── notices ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def add(self, notice: DeathNotice, database: str) -> None:
        """Keep a notice of a death in a database until its maintenance process has acknowledged it."""
        self._kept[database].desk.add(notice)

    def exchange(self) -> None:
        """Take in acknowledgements, send what the sockets take."""
        for keeper in self._kept.values():
            keeper.desk.receive()
            keeper.desk.flush()

    def channels(self) -> Iterator[tuple[socket.socket, bool]]:
        """The sockets to select on, each with whether something still has to be sent."""
        for keeper in self._kept.values():
            if keeper.desk.channel is not None:
                yield keeper.desk.channel, keeper.desk.wants_to_write

    def detach(self) -> None:
        """In a child, which must not hold these sockets."""
        for keeper in self._kept.values():
            keeper.desk.detach()

    @property
    def pending(self) -> int:
        """Notices not yet acknowledged."""
        return sum(keeper.desk.pending for keeper in self._kept.values())

    # ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def settled(self) -> bool:
        """True when every one of them runs and is ready."""
        return all(keeper.child is not None and keeper.child.ready_at is not None for keeper in self._kept.values())

    def slots(self) -> dict[str, int | None]:
        """By database: where its maintenance process writes on the board; None: there is none now."""
        return {name: None if keeper.child is None else keeper.child.slot for name, keeper in self._kept.items()}

    @property
    def fatal(self) -> str | None:
        """Why the program cannot go on: one of them cannot boot."""
        return next((keeper.fatal for keeper in self._kept.values() if keeper.fatal is not None), None)

    def fill(self, now: float) -> None:
        """Fork those that are missing and due."""
        for keeper in self._kept.values():
            keeper.fill(now)

    def watch(self, now: float) -> None:
        """Note when one becomes ready; kill one whose loop has stood still for too long."""
        for keeper in self._kept.values():
            keeper.watch(now)

    def reload(self, settings: Settings) -> None:
        """New settings: those that run with others are replaced; databases that are new get one."""
        for name, keeper in self._kept.items():
            if name in settings.named_databases:
                keeper.reload(settings.at(name))
        self._open(settings)

    @property
    def pids(self) -> list[int]:
        """Of those that run."""
        return [keeper.child.pid for keeper in self._kept.values() if keeper.child is not None]

    def owns(self, pid: int) -> bool:
        """True for the pid of one of them."""
        return any(keeper.owns(pid) for keeper in self._kept.values())

    def bury(self, end: Exit, now: float) -> None:
        """One of them has ended."""
        for keeper in self._kept.values():
            if keeper.owns(end.pid):
                keeper.bury(end, now)
                return

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def end(self) -> None:
        """No child is left: each ends once its notices are acknowledged."""
        for keeper in self._kept.values():
            keeper.end()

    def kill(self, reason: str) -> bool:
        """KILL those that still run; False when there was none."""
        living = [keeper for keeper in self._kept.values() if keeper.child is not None]
        for keeper in living:
            keeper.kill(reason)
        return bool(living)

    def over(self, *, late: bool) -> bool:
        """True when all have ended and nothing is left to tell; `late`: there is no time for that any more."""
        return all(
            keeper.child is None and (late or keeper.given_up or not keeper.desk.pending)
            for keeper in self._kept.values()
        )
