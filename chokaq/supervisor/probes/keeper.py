"""Keeping the probe port answered: the supervisor holds the port, and a process of its own answers on it.

The port outlives that process: while another takes its place, those who ask wait in the line instead of being refused. It answers
until the very end, so that a worker that drains says so.
"""

import socket
from collections.abc import Callable

import structlog

from chokaq.config.settings import Settings
from chokaq.supervisor.board import Board
from chokaq.supervisor.bulletin import Bulletin
from chokaq.supervisor.probes.listening import listen
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.respawn import Backoff
from chokaq.supervisor.spawn import ProbesMain
from chokaq.supervisor.watch import FREEZE
from chokaq.supervisor.web import WebKeeper

log = structlog.get_logger("chokaq")

STALL_LIMIT = 15.0
"""Seconds after which a process that answers nobody is killed: what it leaves unanswered may cost the whole worker."""


class ProbesKeeper:
    """The probe port of this supervisor, and who answers on it."""

    def __init__(
        self,
        settings: Settings,
        board: Board,
        bulletin: Bulletin,
        main: ProbesMain,
        leave: Callable[[], None],
        *,
        restarted: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        """`leave`: closes, in the fresh process, what belongs to the supervisor only; not the port. `restarted`: hears why."""
        self._settings = settings
        self._board = board
        self._bulletin = bulletin
        self._main = main
        self._listening: socket.socket | None = None
        self._backoff = Backoff(settings.supervisor.respawn_min, settings.supervisor.respawn_max)
        self._due_at = 0.0
        self._filled_at = 0.0
        self._judge_from = 0.0
        self._process = WebKeeper(
            settings, self._run, leave, serves="probes", wanted=lambda _settings: self._listening is not None
        )
        self._process.restarted = restarted

    @property
    def pid(self) -> int | None:
        """Of the process that answers."""
        return self._process.pid

    def fill(self, now: float) -> None:
        """Open the port and fork the process, where they are wanted, missing and due."""
        if self._listening is None and self._settings.probes.port is not None and now >= self._due_at:
            self._open(now)
        if now - self._filled_at > FREEZE:
            self._judge_from = now + STALL_LIMIT
        self._filled_at = now
        heard_at = max(self._bulletin.served_at, self._process.forked_at)
        if self._process.pid is not None and now >= self._judge_from and now - heard_at > STALL_LIMIT:
            self._process.stalled()
        self._process.fill(now)

    def took(self, end: Exit, now: float) -> bool:
        """Whether it was this process that died."""
        return self._process.took(end, now)

    def reload(self, settings: Settings, now: float) -> None:
        """New settings: another process, and another port where that has changed."""
        old, new = self._settings.probes, settings.probes
        self._settings = settings
        if (old.host, old.port) != (new.host, new.port):
            self.close()
            self._due_at = now
        self._process.reload(settings, now)

    def close(self) -> None:
        """Close the port; also in children, which have no business there."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def kill(self) -> None:
        """The program ends."""
        self._process.kill()
        self.close()

    def _open(self, now: float) -> None:
        probes = self._settings.probes
        assert probes.port is not None
        try:
            self._listening = listen(probes.host, probes.port)
        except OSError as error:
            # Jobs are done all the same; whoever probes hears that nobody answers.
            self._due_at = now + self._backoff.died(0.0)
            again = round(self._due_at - now, 1)
            log.warning("probes_cannot_listen", host=probes.host, port=probes.port, problem=str(error), again_in=again)
            return
        log.info("probes_listening", host=probes.host, port=self._listening.getsockname()[1])

    def _run(self, settings: Settings, parent_pid: int) -> int:
        assert self._listening is not None
        return self._main(settings, self._board, self._bulletin, self._listening, parent_pid)
