"""A job this child holds under a lease, from the fetch until its last transition is answered."""

import asyncio
import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from chokaq.config.settings import Policy
from chokaq.lifecycle.states import CancelReason
from chokaq.store.records import Cancellation, Failure, FetchedJob, Held, Release, Retry

if TYPE_CHECKING:
    from chokaq.jobs.context import JobContext
    from chokaq.jobs.dispatch import Route
    from chokaq.lifecycle.circuit import Permit
    from chokaq.worker.breakers import Breaker
    from chokaq.worker.tally import TypeFigures


class Stage(IntEnum):
    """How far a claim has come inside this child."""

    BUFFERED = 0
    STARTING = 1
    """Its start is queued or under way."""
    READY = 2
    """Started; waits for its runner."""
    RUNNING = 3
    """Its handler runs."""
    SETTLING = 4
    """Its last transition is queued, under way or answered: what a heartbeat says of it no longer matters."""


BUFFERED, STARTING, READY, RUNNING, SETTLING = Stage
"""The members as plain names: every job is compared with them some ten times, and a look into an enum is not free."""


class Operation(IntEnum):
    """A transition on the settle lane, in the order in which the lane serves them."""

    START = 0
    SUCCEED = 1
    RETRY = 2
    FAIL = 3
    RELEASE = 4
    LEAVE = 5
    """Nothing is written of the job, which is somebody else's; only what its execution held besides is given up."""


START: Final = Operation.START


Change = Retry | Failure | Release | None
"""What goes with an operation; None for START, SUCCEED and LEAVE."""


class Claim:
    """One fetched job. Written by the event loop only; the pulse lane reads it."""

    __slots__ = (
        "breaker",
        "cancellation",
        "change",
        "context",
        "deadline",
        "denied",
        "disowned",
        "ended_at",
        "figures",
        "held",
        "is_suspect",
        "job",
        "lost",
        "operation",
        "permit",
        "policy",
        "reason",
        "route",
        "runner",
        "since",
        "stage",
        "task",
        "timer",
        "verdict",
        "waited",
    )

    def __init__(
        self,
        job: FetchedJob,
        policy: Policy,
        route: "Route | None" = None,
        since: float = 0.0,
        breaker: "Breaker | None" = None,
        *,
        figures: "TypeFigures | None" = None,
    ) -> None:
        """`route`: None when this process does not know the job's type; `since`: when it came, in time.monotonic() seconds;
        `breaker`, `figures`: of its type, the latter None when nothing is counted.
        """
        self.job: Final = job
        self.held: Final = Held(job.id, job.lease)
        self.policy: Final = policy
        self.route: Final = route
        self.breaker: Final = breaker
        self.since: Final = since
        self.figures: Final = figures
        self.is_suspect: Final = job.crash_count > 0
        """True when a process has died under this job before."""
        self.stage = BUFFERED
        self.context: JobContext | None = None
        self.task: asyncio.Task[Any] | None = None
        """The runner's task, while the handler runs in it."""
        self.runner = -1
        self.deadline = math.inf
        """When its process is killed for it, in time.monotonic() seconds."""
        self.reason: CancelReason | None = None
        """Why the run was asked to stop; the first reason counts."""
        self.cancellation: Cancellation | None = None
        """Who cancelled it and why."""
        self.lost = False
        """The lease is someone else's; learnt before the job was started."""
        self.operation = START
        self.change: Change = None
        self.timer: set[Claim] | None = None
        self.permit: Permit | None = None
        """Its type's circuit has admitted it, and has not yet been told how it ended."""
        self.verdict: bool | None = None
        """What its run says about its type: True it works, False it does not, None nothing."""
        self.denied = False
        """It goes back because its type's circuit is open."""
        self.waited = 0.0
        """For how many seconds it had been due when it was claimed; known when it is counted."""
        self.ended_at = 0.0
        """When its handler ended, in time.monotonic() seconds; 0: it has not, or is not counted."""
        self.disowned = False
        """It has been counted as lost."""

    def request_stop(self, reason: CancelReason) -> None:
        """Ask a run to stop: the context says so, and the handler gets a CancelledError at its await."""
        if self.reason is None:
            self.reason = reason
        if self.context is not None:
            self.context.request_cancel(reason)
        if self.task is not None:
            self.task.cancel()
