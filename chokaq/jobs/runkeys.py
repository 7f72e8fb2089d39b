"""Keys that executions hold: what passes between the idempotency middleware, a job's context and the worker."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from chokaq.store.claims import ClaimAnswer, Completion, RunClaim

if TYPE_CHECKING:
    from chokaq.config.settings import IdempotencySettings
    from chokaq.jobs.context import JobContext


class HeldKey:
    """A key that an execution has asked for. Written by the event loop; the worker's lanes read it."""

    __slots__ = ("answer", "claim", "finished", "result", "result_ttl_ms")

    def __init__(self, claim: RunClaim, result_ttl_ms: int | None) -> None:
        """`result_ttl_ms`: how long the marker answers once the run has completed; None: for ever."""
        self.claim = claim
        self.result_ttl_ms = result_ttl_ms
        self.answer: asyncio.Future[ClaimAnswer] | None = None
        """Done once the store has answered; None: not asked through a lane."""
        self.finished = False
        """True once the work under the key is done: then the claim becomes a marker, whatever else becomes of the job."""
        self.result: str | None = None
        """ASCII JSON text to keep with the marker."""

    @property
    def is_pending(self) -> bool:
        """True while nobody knows whether the claim was taken."""
        return self.answer is not None and not self.answer.done()

    def finish(self, result: str | None = None) -> None:
        """The work is done."""
        self.result = result
        self.finished = True

    def completion(self) -> Completion:
        """The marker."""
        claim = self.claim
        return Completion(claim.key, claim.id, claim.lease, self.result_ttl_ms, self.result)


class RunKeys(Protocol):
    """Where executions claim keys: a worker's, or a test's."""

    @property
    def settings(self) -> "IdempotencySettings":
        """Times to live, and their bounds."""
        ...

    @property
    def least_ttl(self) -> float:
        """Seconds a claim must live at least, so that it is renewed in time."""
        ...

    async def claim(self, ctx: "JobContext", held: HeldKey) -> ClaimAnswer:
        """Ask for a key, and keep it with the context unless the answer is that it was not claimed.

        From then on the worker renews the claim with the lease and, when the execution has ended, completes or releases it: a
        cancellation of whoever waits here changes nothing about that. Raises StoreRefused.
        """
        ...
