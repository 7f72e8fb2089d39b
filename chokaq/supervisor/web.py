"""Keeping a web process alive: forked when it is wanted, replaced with backoff, never anybody's reason to end.

There are two, so that neither takes the other down: one serves The Deck (when `deck.enabled`), one answers probes
(chokaq.supervisor.probes). Their death affects no child, and a Deck that cannot be served leaves a worker that works.
"""

import os
import signal
from collections.abc import Callable

import structlog

from chokaq.config.settings import Settings
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.reload import without_level
from chokaq.supervisor.respawn import Backoff
from chokaq.supervisor.spawn import WebMain, fork

log = structlog.get_logger("chokaq")

GRACE = 5.0
"""Seconds after TERM in which it may end by itself."""


class WebKeeper:
    """One web process of this supervisor."""

    def __init__(
        self,
        settings: Settings,
        main: WebMain,
        leave: Callable[[], None],
        *,
        serves: str = "deck",
        wanted: Callable[[Settings], bool] = lambda settings: settings.deck.enabled,
    ) -> None:
        """`serves`: for the log. `wanted`: whether there should be one, under these settings."""
        self._settings = settings
        self._main = main
        self._leave = leave
        self._wanted = wanted
        self._serves = serves
        self._backoff = Backoff(settings.supervisor.respawn_min, settings.supervisor.respawn_max)
        self._pid: int | None = None
        self._forked_at = 0.0
        self._due_at = 0.0
        self._kill_at: float | None = None
        self._killed = False
        self._ending = False
        self.restarted: Callable[[str], None] = lambda _cause: None
        """Told when it has ended and is replaced: why."""

    @property
    def pid(self) -> int | None:
        """Of the running one."""
        return self._pid

    @property
    def forked_at(self) -> float:
        """When the running one was forked."""
        return self._forked_at

    def fill(self, now: float) -> None:
        """Fork it when it is wanted, missing and due; kill one that does not leave."""
        if self._pid is not None:
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                log.warning("web_killed", serves=self._serves, pid=self._pid)
                os.kill(self._pid, signal.SIGKILL)
            return
        if self._ending or not self._wanted(self._settings) or now < self._due_at:
            return
        settings, parent = self._settings, os.getpid()
        try:
            self._pid = fork(lambda: self._main(settings, parent), self._leave)
        except OSError as error:
            self._due_at = now + self._backoff.died(0.0)
            log.warning("fork_failed", child="web", serves=self._serves, error=str(error))
            return
        self._forked_at, self._kill_at, self._killed = now, None, False
        log.info("web_forked", serves=self._serves, pid=self._pid)

    def took(self, end: Exit, now: float) -> bool:
        """Whether it was this one that died; the next is due after a backoff."""
        if end.pid != self._pid:
            return False
        asked, self._pid, self._kill_at = self._kill_at is not None, None, None
        if not self._ending:
            self.restarted("reload" if asked else "crash")
        self._due_at = now if asked else now + self._backoff.died(now - self._forked_at)
        if self._ending or asked:
            log.info("web_ended", serves=self._serves, pid=end.pid)
        else:
            log.error(
                "web_died",
                serves=self._serves,
                pid=end.pid,
                exit_code=end.code,
                signal=end.signal,
                again_in=round(self._due_at - now, 1),
            )
        return True

    def reload(self, settings: Settings, now: float) -> None:
        """New settings: one that they concern is replaced."""
        changed = without_level(settings) != without_level(self._settings)
        self._settings = settings
        if changed and self._pid is not None:
            self._leave_soon(now)

    def end(self, now: float) -> None:
        """All is ending: it leaves meanwhile, and nobody waits for it."""
        if not self._ending:
            self._ending = True
            if self._pid is not None:
                self._leave_soon(now)

    def stalled(self) -> None:
        """The running one does nothing any more: another takes its place."""
        if self._pid is not None and not self._killed:
            self._killed = True
            log.error("web_stalled", serves=self._serves, pid=self._pid)
            os.kill(self._pid, signal.SIGKILL)

    def kill(self) -> None:
        """The program ends: what is left of it ends too."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)

    def _leave_soon(self, now: float) -> None:
        if self._kill_at is None and self._pid is not None:
            self._kill_at = now + GRACE
            os.kill(self._pid, signal.SIGTERM)
