"""All processes of one supervisor: which posts exist, who fills them, who is leaving, and what the dead leave behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import structlog

from chokaq.config.settings import QueueSettings, Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.supervisor.board import Board, SlotState, Snapshot
from chokaq.supervisor.children import Assignment, Child, Post
from chokaq.supervisor.keepers import Keepers
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.respawn import MAX_EARLY_DEATHS, Backoff
from chokaq.supervisor.spawn import Entries, fork
from chokaq.supervisor.tally import restart_cause
from chokaq.supervisor.verdicts import blame, notice_of
from chokaq.worker.status import ExitCode

log = structlog.get_logger("chokaq")

FULL_PAUSE = 1.0
"""Seconds before an empty post for which the board has no slot is tried again."""
CROWDED_PAUSE = 30.0
"""… and a recycling, for which the board has none, or which has too many predecessors at work."""


class Crew:
    """Posts and their children. Decides nothing about signals or reloads; says what went wrong through `fatal`."""

    def __init__(self, settings: Settings, board: Board, entries: Entries, leave: Callable[[], None]) -> None:
        self.board = board
        self.posts: list[Post] = []
        self.fatal: str | None = None
        """Why the program cannot go on: the first child of a post cannot boot. Never set by one that follows a ready one."""
        self.killed = False
        """True once anything had to be killed or died unexpectedly; a later drain resets it."""
        self.stopping = False
        """No queue child is forked any more."""
        self.restarted: Callable[[str, str], None] = lambda _queue, _cause: None
        """Told of every child that has ended and is replaced: its queue, and why it ended."""
        self._entries = entries
        self._leave = leave
        self._pid = os.getpid()
        self._owners: dict[int, Post] = {}
        self._children: dict[int, Child] = {}
        self.keepers = Keepers(settings, board, entries.maintenance, self.leave_in_child)

    def leave_in_child(self) -> None:
        """Close, in a fresh child, what only the supervisor may hold."""
        self._leave()
        self.keepers.detach()

    # ── posts ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def open_post(self, assignment: Assignment, *, added: bool = False) -> Post:
        """A new place for the queue, at its lowest free index; filled on the next turn."""
        taken = {post.index for post in self.posts_of(assignment.queue.name)}
        index = next(number for number in range(len(taken) + 1) if number not in taken)
        limits = assignment.settings.supervisor
        post = Post(index, assignment, Backoff(limits.respawn_min, limits.respawn_max), added=added)
        self.posts.append(post)
        return post

    def close_post(self, post: Post, reason: str) -> None:
        """Drain every child of the post; it is gone when they have ended."""
        post.closed = True
        for child in post.children:
            self.drain(child, reason, post.grace)
        if not post.children:
            self.posts.remove(post)

    def posts_of(self, queue: str) -> list[Post]:
        """The open posts of a queue, by index."""
        return sorted(
            (post for post in self.posts if post.queue == queue and not post.closed), key=lambda post: post.index
        )

    def queues(self) -> dict[str, list[Post]]:
        """Open posts by queue."""
        grouped: dict[str, list[Post]] = {}
        for post in self.posts:
            if not post.closed:
                grouped.setdefault(post.queue, []).append(post)
        return grouped

    @property
    def ready(self) -> bool:
        """True when every queue has a live child that is ready and reaches the store."""
        return self.hindrance is None

    @property
    def hindrance(self) -> str | None:
        """Why the program is not ready, naming the queues; None when it is."""
        grouped = self.queues()
        live = {queue: [post.current for post in posts if post.is_live] for queue, posts in grouped.items()}
        # Those that boot tell, too: a program that waits for its store from the start says what it waits for.
        heard = {queue: children or self._booting(grouped[queue]) for queue, children in live.items()}
        away = [queue for queue, children in heard.items() if children and not any(map(self._reaches_store, children))]
        without = [queue for queue, children in live.items() if not children and queue not in away]
        reasons = [] if grouped else ["no queue is open"]
        if without:
            reasons.append(f"no live child: {', '.join(without)}")
        if away:
            reasons.append(f"the store does not answer: {', '.join(away)}")
        return "; ".join(reasons) or None

    def _booting(self, posts: list[Post]) -> list[Child | None]:
        return [post.current for post in posts if post.current is not None and post.current.ready_at is None]

    def _reaches_store(self, child: Child | None) -> bool:
        return child is not None and self.board.reaches_store(child.slot)

    def living(self) -> Iterator[tuple[Post, Child]]:
        """Every queue child with its post."""
        for pid, child in list(self._children.items()):
            yield self._owners[pid], child

    @property
    def count(self) -> int:
        """Living queue children."""
        return len(self._children)

    # ── forking ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def fill(self, now: float) -> None:
        """Fork a child for every open post that is empty and due."""
        if self.stopping:
            return
        for post in self.posts:
            if not post.closed and post.current is None and post.next is None and post.due_at <= now:
                post.current = self._fork(post, post.assignment, now)

    def replace(self, post: Post, change: Assignment, reason: str, now: float) -> bool:
        """Fork the successor of the post's child; the child leaves when it is ready. False: no room, or one is on its way."""
        if post.next is not None or post.closed or self.stopping:
            return False
        post.change, post.replace_reason = change, reason
        post.next = self._fork(post, change, now)
        if post.next is not None:
            log.info("replacement_started", child=post.name, reason=reason, pid=post.next.pid)
        return post.next is not None

    def _fork(self, post: Post, assignment: Assignment, now: float) -> Child | None:
        number = self.board.take()
        if number is None:
            log.error("status_board_full", child=post.name, slots=self.board.slots)
            post.due_at, post.retry_at = now + FULL_PAUSE, now + CROWDED_PAUSE
            return None
        slot = self.board.slot(number)
        try:
            pid = fork(
                lambda: self._entries.child(assignment.settings, assignment.queue, post.index, slot, self._pid),
                self.leave_in_child,
            )
        except OSError as error:
            self.board.give_back(number)
            post.due_at = post.retry_at = now + post.backoff.died(0.0)
            log.warning("fork_failed", child=post.name, error=str(error))
            return None
        child = Child(pid=pid, slot=number, forked_at=now, name=post.name)
        self._children[pid], self._owners[pid] = child, post
        log.info("child_forked", child=post.name, queue=post.queue, pid=pid)
        return child

    # ── signals to children ───────────────────────────────────────────────────────────────────────────────────────────
    def let_go(self, child: Child, reason: str) -> None:
        """TERM, once, without hurry: its handlers have the time that their own limits give them."""
        if child.drain_reason is None:
            child.drain_reason, child.patient = reason, True
            self.board.set_patient(child.slot, True)
            log.info("drain_started", child=child.name, pid=child.pid, reason=reason, grace=None)
            send(child.pid, signal.SIGTERM)

    def drain(self, child: Child, reason: str, grace: float) -> None:
        """TERM, once; KILL after `grace` seconds. A second call can only bring the KILL nearer, or end the patience."""
        kill_at = time.monotonic() + grace
        child.kill_at = kill_at if child.kill_at is None else min(child.kill_at, kill_at)
        if child.drain_reason is None or child.patient:
            told = {"child": child.name, "pid": child.pid, "reason": reason, "grace": round(grace, 1)}
            if child.patient:
                log.info("drain_hurried", **told)
            else:
                log.info("drain_started", **told)
            child.drain_reason, child.patient = reason, False
            self.board.set_patient(child.slot, False)
            send(child.pid, signal.SIGTERM)

    def kill(self, child: Child, reason: str, *, stalled: bool = False) -> None:
        """KILL, with the cause and the culprits fixed by what the board says now."""
        if child.killed_for is not None:
            return
        self.killed = True
        child.killed_for, child.culprits = blame(self.board.read(child.slot), time.monotonic(), stalled=stalled)
        log.warning(
            "child_killed",
            child=child.name,
            pid=child.pid,
            reason=reason,
            cause=child.killed_for,
            culprits=[held.id for held in child.culprits[:10]],
        )
        send(child.pid, signal.SIGKILL)

    def leave_post(self, post: Post, child: Child) -> None:
        """The child no longer counts as the one that fills its post."""
        if post.current is child:
            post.current = None
            post.leaving.append(child)

    # ── readiness ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def notice_ready(self, now: float) -> None:
        """Take note of children that have become ready; a replacement sends its predecessor home."""
        for post, child in self.living():
            if child.ready_at is None and self._has_been_ready(post, child):
                child.ready_at = now
                log.info(
                    "child_ready",
                    child=post.name,
                    queue=post.queue,
                    pid=child.pid,
                    boot=round(now - child.forked_at, 3),
                )
                if child is post.next:
                    self._promote(post, child)
                if child is post.current:
                    post.been_ready, post.early_deaths, post.added = True, 0, False

    def _has_been_ready(self, post: Post, child: Child) -> bool:
        state = self.board.read(child.slot).state
        # One that drains again already was ready for a moment, or nearly; that does not make it a replacement.
        return state is SlotState.READY or (state is SlotState.DRAINING and child is post.current)

    def _promote(self, post: Post, child: Child) -> None:
        old, post.current, post.next = post.current, child, None
        if post.change is not None:
            post.assignment, post.change = post.change, None
        if old is not None:
            post.leaving.append(old)
            self.let_go(old, post.replace_reason)

    # ── deaths ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def bury(self, end: Exit, now: float) -> None:
        """Whatever was reaped: a child, the maintenance process, or a stranger that became ours as PID 1."""
        child = self._children.pop(end.pid, None)
        if child is None:
            if self.keepers.owns(end.pid):
                self.keepers.bury(end, now)
                self.fatal = self.fatal or self.keepers.fatal
            else:
                log.debug("orphan_reaped", pid=end.pid)
            return
        post = self._owners.pop(end.pid)
        snapshot = self.board.read(child.slot)
        self.board.give_back(child.slot)
        notice = notice_of(child, post.queue, end, snapshot, now)
        cause = notice.cause if notice is not None else None
        log.info(
            "child_died",
            child=child.name,
            queue=post.queue,
            pid=end.pid,
            exit_code=end.code,
            signal=end.signal,
            cause=cause,
            memory_kb=snapshot.memory_kb or end.peak_memory_kb,
            last_pulse_ms=snapshot.pulse_age_ms(now),
            worker_id=snapshot.worker_id,
        )
        if notice is not None:
            self.keepers.add(notice, post.assignment.settings.database_name(post.queue))
        if cause == DeathCause.CRASH or end.signal is not None:
            self.killed = True
        self._vacate(post, child, end, snapshot, now)

    def _vacate(self, post: Post, child: Child, end: Exit, snapshot: Snapshot, now: float) -> None:
        was_ready = child.ready_at is not None or snapshot.state is SlotState.READY
        if not self.stopping and not post.closed:
            self.restarted(post.queue, restart_cause(child, end, was_ready=was_ready))
        if child in post.leaving:
            post.leaving.remove(child)
        elif child is post.next:
            post.next, post.change = None, None
            post.retry_at = now + post.backoff.died(0.0)
            if not self.stopping and not post.closed:
                log.error(
                    "replacement_failed",
                    child=post.name,
                    reason=post.replace_reason,
                    exit_code=end.code,
                    signal=end.signal,
                )
        elif child is post.current:
            post.current = None
            if was_ready:
                post.been_ready, post.early_deaths, post.added = True, 0, False
            ready_for = 0.0 if child.ready_at is None else now - child.ready_at
            post.due_at = now if end.code == ExitCode.RETIRED else now + post.backoff.died(ready_for)
            if not was_ready and child.drain_reason is None:
                self._count_early_death(post, child, end, snapshot)
        if post.closed and not post.children:
            self.posts.remove(post)

    def _count_early_death(self, post: Post, child: Child, end: Exit, snapshot: Snapshot) -> None:
        post.early_deaths += 1
        if end.code != ExitCode.BOOT_FAILED and (post.early_deaths < MAX_EARLY_DEATHS or not snapshot.reaches_store):
            # One that died while it waited for its store says nothing about what it was to run.
            return
        how = f"exit code {end.code}" if end.signal is None else f"signal {end.signal}"
        if post.added or post.been_ready:
            # What has worked before may work again (a file half written, a login being changed), and what was added while
            # running is needed by nobody yet: the others go on meanwhile, and the program is not ready.
            log.error("child_cannot_boot", child=post.name, problem=f"{how}; it is tried again, the others go on")
        elif self.fatal is None and not self.stopping:
            self.fatal = f"the child {post.name} cannot boot ({how}); its own message stands above"

    def queue_of(self, post: Post, child: Child) -> QueueSettings:
        """The queue settings that this child was forked with."""
        if child is post.next and post.change is not None:
            return post.change.queue
        return post.assignment.queue


def send(pid: int, number: int) -> None:
    """Signal a process that may just have died."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        # Dead but not yet reaped cannot happen to raise this; dead and reaped by a stranger can.
        return
