"""Idempotency keys in a test's own process: asked for one by one, and given back when a handler has ended."""

from chokaq.config.settings import IdempotencySettings
from chokaq.jobs.context import JobContext
from chokaq.jobs.runkeys import HeldKey
from chokaq.store.claims import ClaimAnswer, Claiming
from chokaq.store.protocol import Session
from chokaq.store.records import Registration


class StoreKeys:
    """A `chokaq.jobs.runkeys.RunKeys` over one session."""

    least_ttl = 0.0

    def __init__(self, session: Session, worker: Registration, settings: IdempotencySettings) -> None:
        """`worker`: as which the session's jobs were claimed."""
        self._session = session
        self._worker = worker
        self.settings = settings

    async def claim(self, ctx: JobContext, held: HeldKey) -> ClaimAnswer:
        """Ask for a key; see RunKeys."""
        [answer] = self._session.claim_runs(self._worker, [held.claim])
        if answer.state is Claiming.CLAIMED:
            ctx.held_keys = (*ctx.held_keys, held)
        return answer

    def close(self, ctx: JobContext) -> None:
        """The handler has ended: its keys become markers or are given up."""
        for held in ctx.held_keys:
            if held.finished:
                self._session.complete_runs(self._worker, [held.completion()])
            else:
                self._session.release_claims(self._worker, [held.claim])
