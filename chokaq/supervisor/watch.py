"""Acting on the board: limits, stalls, slow boots, recycling, and kills that have come due."""

import structlog

from chokaq.supervisor.board import SlotState, Snapshot
from chokaq.supervisor.children import Assignment, Child, Post
from chokaq.supervisor.crew import CROWDED_PAUSE, Crew
from chokaq.supervisor.verdicts import Verdict, judge

log = structlog.get_logger("chokaq")

FREEZE = 3.0
"""A loop turn later than this many seconds means that we stood still ourselves (a stopped process group, a frozen host)."""
PARDON = 10.0
"""Seconds for which children are not judged after that: their pulses are old for the same reason."""

MAX_LEAVING = 3
"""Predecessors of one post that may still be finishing when its child is recycled: they take memory, too."""


class Watch:
    """Looks at every child on every turn."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._last_turn: float | None = None
        self._judge_from = 0.0

    def step(self, now: float) -> None:
        """Judge every child and do what follows."""
        if self._last_turn is not None and now - self._last_turn > FREEZE:
            self._judge_from = now + PARDON
            log.warning("supervisor_stood_still", seconds=round(now - self._last_turn, 1))
        self._last_turn = now
        self._crew.keepers.watch(now)
        for post, child in self._crew.living():
            if child.killed_for is not None:
                continue
            if child.kill_at is not None and child.kill_at <= now:
                running = self._crew.board.read(child.slot).running
                log.warning("worker_shutdown_timed_out", child=child.name, pid=child.pid, running=running)
                self._crew.kill(child, child.drain_reason or "grace_over")
            elif child.ready_at is None:
                limit = post.assignment.settings.supervisor.boot_timeout
                # One that waits for a store which is away (C30) is not at fault, at the first start no more than later.
                waits = not self._crew.board.reaches_store(child.slot)
                # A slow server is not a failed boot: the time counts from the last step that was done.
                since = max(child.forked_at, self._crew.board.read(child.slot).pulse_at or 0.0)
                if now - since > limit and not waits:
                    log.error("boot_timeout", child=post.name, pid=child.pid, seconds=limit)
                    self._crew.kill(child, "boot_timeout")
            elif now >= self._judge_from:
                self._act(post, child, self._crew.board.read(child.slot), now)

    def _act(self, post: Post, child: Child, board: Snapshot, now: float) -> None:
        if board.state is SlotState.DRAINING and child.drain_reason is None:
            # Not by our word: it was retired, or somebody sent it TERM. It claims no more, so its post is empty.
            log.warning("child_leaves", child=post.name, pid=child.pid, running=board.running)
            self._crew.leave_post(post, child)
            self._crew.drain(child, "by_itself", post.grace)
        queue = self._crew.queue_of(post, child)
        match judge(child, board, queue, now):
            case Verdict.STALLED:
                log.error("child_stalled", child=post.name, pid=child.pid, last_pulse_ms=board.pulse_age_ms(now))
                self._crew.leave_post(post, child)
                self._crew.kill(child, "stall_limit", stalled=True)
            case Verdict.OVERDUE:
                # It claims no more and its other jobs may finish; its successor starts at once, so that the queue goes on.
                if post.current is child or child.patient:
                    log.error(
                        "hard_limit", child=post.name, pid=child.pid, jobs=[held.id for held in board.overdue(now)[:10]]
                    )
                    self._crew.leave_post(post, child)
                self._crew.drain(child, "hard_limit", queue.policy.hard_limit_grace)
            case Verdict.SPENT:
                if post.current is child and child.drain_reason is None and now >= post.retry_at:
                    self._recycle(post, now)
            case Verdict.FINE:
                pass
        if child.patient:
            self._accompany(post, child, board, now)

    def _recycle(self, post: Post, now: float) -> None:
        if len(post.leaving) >= MAX_LEAVING:
            post.retry_at = now + CROWDED_PAUSE
            log.warning(
                "recycle_waits",
                child=post.name,
                problem=f"{len(post.leaving)} predecessors still run their last handlers",
            )
            return
        self._crew.replace(post, Assignment(post.assignment.queue, post.assignment.settings), "recycle", now)

    def _accompany(self, post: Post, child: Child, board: Snapshot, now: float) -> None:
        """One that leaves without hurry: the limits bound its handlers, the grace what comes after the last of them."""
        if board.handlers or board.running or not board.reaches_store:
            child.idle_since = None
        elif child.idle_since is None:
            child.idle_since = now
        elif now - child.idle_since > post.grace:
            self._crew.kill(child, "grace_over")
