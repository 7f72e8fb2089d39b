"""The end of the program: drain the children, kill what is late, let maintenance report every death, all within the grace."""

import structlog

from chokaq.supervisor.crew import Crew
from chokaq.supervisor.exits import ProgramExit

log = structlog.get_logger("chokaq")

SECOND_SIGNAL_AFTER = 1.0
"""A TERM or INT sooner than this after the first is the same wish (a terminal and a service manager both send one)."""
RELEASE_TIME = 2.0
"""Seconds before the end of the grace at which late children are killed, so that maintenance can still hand their jobs back
inside the budget: whoever stops us kills everything at its end. A tenth of the grace when that is shorter."""
HURRY = 5.0
"""Seconds that maintenance gets at most once a second signal has killed the children."""


class Shutdown:
    """One drain, from the first signal to the exit code."""

    def __init__(self, crew: Crew, grace: float, reason: str, code: ProgramExit, now: float) -> None:
        self._crew = crew
        self._code = code
        self._signalled_at: float | None = None
        self._deadline = now + grace
        kill_after = grace - min(RELEASE_TIME, grace / 10)
        log.info("stopping", reason=reason, grace=grace, children=crew.count)
        crew.stopping = True
        crew.killed = False
        for post in list(crew.posts):
            post.closed = True
            for child in post.children:
                crew.drain(child, "shutdown", kill_after)

    def signalled(self, now: float) -> None:
        """A TERM or INT. The first only counts; a second one, late enough, kills; a third kills maintenance as well."""
        if self._signalled_at is None:
            self._signalled_at = now
        elif now - self._signalled_at >= SECOND_SIGNAL_AFTER:
            self._signalled_at = now
            if not self._crew.count:
                self._deadline = now
                return
            log.warning("second_signal", children=self._crew.count)
            self._deadline = min(self._deadline, now + HURRY)
            for _, child in self._crew.living():
                self._crew.kill(child, "second_signal")

    def step(self, now: float) -> bool:
        """Go on; True when nothing is left to wait for."""
        crew, keepers = self._crew, self._crew.keepers
        if crew.count:
            return False
        keepers.end()
        late = now >= self._deadline
        if late and keepers.kill("grace_over"):
            crew.killed = True
        return keepers.over(late=late)

    @property
    def code(self) -> ProgramExit:
        """The exit code, once `step` has said True."""
        if self._code is not ProgramExit.DRAINED:
            return self._code
        clean = not self._crew.killed and not self._crew.keepers.pending
        return ProgramExit.DRAINED if clean else ProgramExit.UNCLEAN
