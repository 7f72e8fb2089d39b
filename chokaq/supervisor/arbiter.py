"""The parent: one loop that waits for signals, deaths, acknowledgements and the clock. No threads, no database, no user code."""

import select
import signal
import time
from collections import deque
from functools import partial

import structlog

from chokaq.config.settings import Settings
from chokaq.observe import configure_logging, tell_repeats
from chokaq.observe.levels import LEVEL_SIGNALS, NORMAL_SIGNAL, configure_level, on_level_signal, signal_name
from chokaq.supervisor.board import MIN_RUNNERS, Board
from chokaq.supervisor.bulletin import Bulletin, Phase, describe
from chokaq.supervisor.children import Assignment
from chokaq.supervisor.crew import Crew, send
from chokaq.supervisor.exits import ProgramExit
from chokaq.supervisor.notify import Notifier
from chokaq.supervisor.probes.keeper import ProbesKeeper
from chokaq.supervisor.reaper import Exit, reap
from chokaq.supervisor.reload import logging_of, plan_reload
from chokaq.supervisor.renewal import Renewal, Wish
from chokaq.supervisor.rollout import Rollout
from chokaq.supervisor.scaling import queue_to_grow, queue_to_shrink
from chokaq.supervisor.shutdown import Shutdown
from chokaq.supervisor.signals import SignalPipe
from chokaq.supervisor.spawn import Entries
from chokaq.supervisor.tally import SupervisorTally
from chokaq.supervisor.watch import Watch
from chokaq.supervisor.web import WebKeeper

log = structlog.get_logger("chokaq")

TICK = 1.0
"""Longest wait between two looks at the board, seconds."""
QUICK_TICK = 0.05
"""… while something is booting or leaving: the board cannot wake us."""


class Arbiter:
    """The supervisor of one program. `run` returns its exit code."""

    def __init__(self, settings: Settings, entries: Entries) -> None:
        self._settings = settings
        processes = sum(queue.processes for queue in settings.queues.values())
        widest = max((queue.max_workers for queue in settings.queues.values()), default=0)
        self.board = Board(slots=max(128, 6 * processes + 16), runners=max(MIN_RUNNERS, 2 * widest))
        self.bulletin = Bulletin()
        self._pipe = SignalPipe()
        self._notifier = Notifier()
        self.crew = Crew(settings, self.board, entries, self._leave_in_child)
        self.web = WebKeeper(settings, entries.web, self.crew.leave_in_child)
        self._rollout = Rollout(self.crew)
        self._watch = Watch(self.crew)
        self._renewal = Renewal(self._renew)
        self._shutdown: Shutdown | None = None
        self._tally = SupervisorTally()
        self.crew.restarted = self._tally.child_restarts
        self.crew.keepers.restarted = partial(self._tally.service_restarts, "maintenance")
        self.web.restarted = partial(self._tally.service_restarts, "web")
        restarted = partial(self._tally.service_restarts, "probes")
        self.probes = ProbesKeeper(
            settings, self.board, self.bulletin, entries.probes, self._leave_but_listen, restarted=restarted
        )
        self._dead: deque[Exit] = deque()
        self._was_ready = False
        self._phase = Phase.STARTING
        self._reloading = False

    def run(self) -> int:
        """Fork everything and watch over it until the end."""
        self._tally.begin(self._settings)
        for queue in self._settings.queues.values():
            for _ in range(queue.processes):
                self.crew.open_post(Assignment(queue, self._settings))
        log.info("supervisor_started", queues={name: queue.processes for name, queue in self._settings.queues.items()})
        self.bulletin.write(describe(self.crew, self._phase))
        try:
            while not self._turn():
                self._wait()
        finally:
            self.web.kill()
            self.probes.kill()
            self._pipe.close()
            self._notifier.close()
            self._tally.close()
        code = self._shutdown.code if self._shutdown is not None else ProgramExit.INTERNAL
        log.info("stopped", exit_code=int(code))
        tell_repeats(all_of_them=True)
        return int(code)

    def _turn(self) -> bool:
        """One look at everything; True at the end."""
        try:
            return self._look()
        except Exception:
            # A defect here must not leave children without a parent: drain them, and never hide it behind exit code 0.
            log.exception("supervisor_failed")
            if self._shutdown is not None:
                raise
            self._stop("internal error", ProgramExit.INTERNAL)
            return False

    def _look(self) -> bool:
        tell_repeats()
        for number in self._pipe.drain():
            self._on_signal(number)
        now = time.monotonic()
        # Readiness before deaths: a replacement that became ready a moment ago is not lost to its predecessor's exit.
        self.crew.notice_ready(now)
        # Kept until each has been looked at: a defect over one of them must not lose the others, whose kernel record is gone.
        self._dead.extend(reap())
        while self._dead:
            end = self._dead.popleft()
            if not (self._renewal.took(end) or self.web.took(end, now) or self.probes.took(end, now)):
                self.crew.bury(end, now)
            self._tally.buried(end.pid)
        self._renewal.step(now)
        self.crew.keepers.exchange()
        if self.crew.fatal is not None and self._shutdown is None:
            log.error("cannot_boot", problem=self.crew.fatal)
            self._stop(self.crew.fatal, ProgramExit.BOOT_FAILED)
        self._watch.step(now)
        self._rollout.step(now)
        self.crew.fill(now)
        self.crew.keepers.fill(now)
        self.web.fill(now)
        self.probes.fill(now)
        self._tell(now)
        return self._shutdown is not None and self._shutdown.step(now)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._pipe.fileno(), select.POLLIN)
        for channel, wants_to_write in self.crew.keepers.channels():
            poll.register(channel, select.POLLIN | (select.POLLOUT if wants_to_write else 0))
        poll.poll(self._patience() * 1000)

    def _patience(self) -> float:
        now = time.monotonic()
        if self._shutdown is not None or self._rollout.busy:
            return QUICK_TICK
        if not self.crew.keepers.settled:
            return QUICK_TICK
        if any(child.ready_at is None or child.kill_at is not None for _, child in self.crew.living()):
            return QUICK_TICK
        due = min((post.due_at for post in self.crew.posts if not post.children), default=now + TICK)
        beat = self._notifier.watchdog_every or TICK
        return max(QUICK_TICK, min(TICK, beat, due - now))

    # ── signals ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGCHLD, signal.SIGUSR1):
            return
        name = signal_name(number)
        log.info("signal", name=name)
        if number in (signal.SIGTERM, signal.SIGINT):
            if self._shutdown is None:
                self._stop(name, ProgramExit.DRAINED)
            if self._shutdown is not None:
                self._shutdown.signalled(time.monotonic())
        elif number in LEVEL_SIGNALS:
            on_level_signal(number)
            self._pass_on(number)
        elif self._shutdown is not None:
            log.info("signal_ignored", name=name, problem="the program is stopping")
        elif number == signal.SIGHUP:
            self._notifier.reloading()
            self._reloading = True
            self._renewal.ask(Wish.RELOAD, self._settings, time.monotonic())
        elif number == signal.SIGUSR2:
            self._renewal.ask(Wish.RESTART, self._settings, time.monotonic())
        elif number == signal.SIGTTIN:
            self._grow()
        elif number == signal.SIGTTOU:
            self._shrink()

    def _pass_on(self, number: int) -> None:
        """Give a signal about the log level to every process; those forked later have it from us."""
        pids = [child.pid for _, child in self.crew.living()] + self.crew.keepers.pids
        pids += [pid for pid in (self.web.pid, self.probes.pid) if pid is not None]
        for pid in pids:
            send(pid, number)

    def _stop(self, reason: str, code: ProgramExit) -> None:
        self._notifier.stopping()
        self._renewal.cancel()
        self._rollout.clear()
        self._phase = Phase.STOPPING
        # Before the children are told: whoever probes hears why they leave.
        self.bulletin.write(describe(self.crew, self._phase))
        self.web.end(time.monotonic())
        self._shutdown = Shutdown(self.crew, self._settings.supervisor.shutdown_grace, reason, code, time.monotonic())

    def _renew(self, new: Settings, wishes: frozenset[Wish]) -> None:
        """Carry out what HUP and USR2 asked for."""
        if Wish.RELOAD in wishes:
            self._reload(new)
        self._settings = new
        self._tally.reload(new)
        self.crew.keepers.reload(new)
        self.web.reload(new, time.monotonic())
        self.probes.reload(new, time.monotonic())
        if Wish.RESTART in wishes:
            self._restart()

    def _reload(self, new: Settings) -> None:
        plan = plan_reload(self.crew.queues(), self._settings, new)
        for post in plan.close:
            self.crew.close_post(post, "reload")
        for assignment in plan.open:
            self.crew.open_post(assignment, added=True)
        changed = {id(post) for post, _ in plan.replace}
        for post in self.crew.posts:
            queue = new.queues.get(post.queue)
            if queue is not None and id(post) not in changed and not post.closed:
                post.assignment = Assignment(queue, new)
        for post, assignment in plan.replace:
            self._rollout.add(post, assignment, "reload")
        if logging_of(new) != logging_of(self._settings):
            configure_logging(new.log_level, new.log_format, new.redact, new.log_repeats)
        elif new.log_level != self._settings.log_level:
            self._change_level(new.log_level)
        log.info(
            "reloaded",
            replaced=[post.name for post, _ in plan.replace],
            closed=[post.name for post in plan.close],
            opened=[assignment.queue.name for assignment in plan.open],
        )

    def _change_level(self, level: str) -> None:
        """The file names another level: it holds in every process, and no child is replaced for it."""
        configure_level(level)
        self._pass_on(NORMAL_SIGNAL)

    def _restart(self) -> None:
        """USR2: every child anew, with the code and settings of now."""
        posts = [post for posts in self.crew.queues().values() for post in posts]
        for post in posts:
            self._rollout.add(post, self._assignment(post.assignment), "rolling_restart")
        log.info("restarting", replaced=[post.name for post in posts])

    def _assignment(self, old: Assignment) -> Assignment:
        """The settings of now: a reload may still stand in the line, and what follows it must not take it back."""
        return Assignment(self._settings.queues.get(old.queue.name, old.queue), self._settings)

    def _grow(self) -> None:
        queue = queue_to_grow(self._loads())
        if queue is not None:
            template = self.crew.posts_of(queue)[0].assignment
            post = self.crew.open_post(self._assignment(template), added=True)
            log.info("process_added", child=post.name, processes=len(self.crew.posts_of(queue)))

    def _shrink(self) -> None:
        queue = queue_to_shrink(self._loads())
        if queue is None:
            log.info("process_not_removed", problem="no queue has more than one process")
            return
        post = self.crew.posts_of(queue)[-1]
        self.crew.close_post(post, "ttou")
        log.info("process_removed", child=post.name, processes=len(self.crew.posts_of(queue)))

    def _loads(self) -> dict[str, list[int]]:
        loads: dict[str, list[int]] = {}
        for queue, posts in self.crew.queues().items():
            boards = [self.board.read(post.current.slot) for post in posts if post.current is not None]
            figures = [board.running + board.buffered for board in boards]
            loads[queue] = figures + [0] * (len(posts) - len(figures))
        return loads

    # ── telling the world ─────────────────────────────────────────────────────────────────────────────────────────────
    def _tell(self, now: float) -> None:
        hindrance = self.crew.hindrance if self._shutdown is None else "stopping"
        ready = hindrance is None
        if ready and self._phase is Phase.STARTING:
            self._phase = Phase.RUNNING
        if ready and not self._was_ready:
            log.info("supervisor_ready")
            self._notifier.ready()
        elif self._was_ready and not ready and self._shutdown is None:
            log.warning("supervisor_not_ready", problem=hindrance)
        self._was_ready = ready
        if self._reloading and not self._renewal.busy and not self._rollout.busy:
            self._reloading = False
            self._notifier.ready()
        self.board.set_ready(ready)
        self.bulletin.write(describe(self.crew, self._phase))
        grouped = self.crew.queues()
        live = {queue: (len(posts), sum(post.is_live for post in posts)) for queue, posts in grouped.items()}
        self._tally.state(live, ready=ready)
        self._notifier.status(self._status(hindrance))
        self._notifier.beat(now)

    def _status(self, hindrance: str | None) -> str:
        if self._shutdown is not None:
            return f"stopping, {self.crew.count} children left"
        grouped = self.crew.queues()
        parts = [f"{queue} {sum(post.is_live for post in posts)}/{len(posts)}" for queue, posts in grouped.items()]
        return ("ready: " if hindrance is None else f"not ready ({hindrance}): ") + ", ".join(parts)

    def _leave_in_child(self) -> None:
        self._pipe.close_in_child()
        self._notifier.close()
        self.probes.close()

    def _leave_but_listen(self) -> None:
        self._pipe.close_in_child()
        self._notifier.close()
        self.crew.keepers.detach()
