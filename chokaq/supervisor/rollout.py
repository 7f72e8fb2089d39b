"""Replacing children one after the other, each new one ready before its predecessor leaves (HUP, USR2)."""

from collections import deque
from dataclasses import dataclass

import structlog

from chokaq.supervisor.children import Assignment, Child, Post
from chokaq.supervisor.crew import Crew

log = structlog.get_logger("chokaq")


@dataclass(slots=True, eq=False)
class _Step:
    post: Post
    change: Assignment
    reason: str
    old: Child | None = None
    new: Child | None = None
    taken_over_at: float | None = None


class Rollout:
    """A line of replacements. The first that cannot boot ends the line: the old children go on working."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._line: deque[_Step] = deque()
        self._active: _Step | None = None

    @property
    def busy(self) -> bool:
        """True while a replacement is under way or waiting."""
        return self._active is not None or bool(self._line)

    def add(self, post: Post, change: Assignment, reason: str) -> None:
        """Append a replacement; one that waits for the same post is superseded."""
        self._line = deque(step for step in self._line if step.post is not post)
        self._line.append(_Step(post, change, reason))

    def clear(self) -> None:
        """Forget what has not begun."""
        self._line.clear()
        self._active = None

    def step(self, now: float) -> None:
        """Look at the replacement under way; begin the next when it is through."""
        if self._active is not None and not self._is_through(self._active, now):
            return
        self._active = None
        while self._line and self._active is None:
            step = self._line[0]
            if step.post.closed:
                self._line.popleft()
                continue
            if step.post.next is not None:
                # A recycling is under way there; ours comes after it.
                return
            self._line.popleft()
            step.old = step.post.current
            if self._crew.replace(step.post, step.change, step.reason, now):
                step.new = step.post.next
                self._active = step
            else:
                self._give_up(step)

    def _is_through(self, step: _Step, now: float) -> bool:
        post = step.post
        if post.closed:
            return True
        if step.new is post.next:
            return False
        if step.new is post.current or (step.new is not None and step.new.ready_at is not None):
            # Its predecessor may still be finishing; one at a time also bounds the memory that a rollout takes. The line does
            # not wait for handlers that run longer than a grace, though.
            if step.taken_over_at is None:
                step.taken_over_at = now
            return step.old not in post.leaving or now - step.taken_over_at > post.grace
        self._give_up(step)
        return True

    def _give_up(self, step: _Step) -> None:
        log.error(
            "rollout_stopped",
            child=step.post.name,
            reason=step.reason,
            problem="the replacement did not become ready; the old children stay",
            not_replaced=[waiting.post.name for waiting in self._line],
        )
        self._line.clear()
