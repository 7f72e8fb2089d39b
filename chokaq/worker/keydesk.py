"""Where this child's executions claim their idempotency keys, and how the keys leave it.

Claims go out over the claim lane, in sets that form by themselves: what is asked for while one call is under way goes with the
next. Completions and releases go out over the settle lane, before the jobs they belong to are settled; renewals over the pulse
lane.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import structlog

from chokaq.config.settings import IdempotencySettings
from chokaq.jobs.context import JobContext
from chokaq.jobs.runkeys import HeldKey
from chokaq.store.claims import ClaimAnswer, Claiming, Completion, RunClaim
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import MAX_BYTES_PER_CALL, MAX_JOBS_PER_CALL, Session
from chokaq.store.records import Registration
from chokaq.worker.claims import Claim
from chokaq.worker.counts import Counts
from chokaq.worker.lane import CallLane

_log = structlog.get_logger("chokaq")
_BYTES_PER_CLAIM = 2_000
"""What a claim costs in a document beside its result, at worst."""

Keyed = TypeVar("Keyed", RunClaim, Completion)


class KeyDesk:
    """The worker's `chokaq.jobs.runkeys.RunKeys`. Event loop only."""

    def __init__(
        self,
        *,
        lane: CallLane,
        worker: Registration,
        settings: IdempotencySettings,
        least_ttl: float,
        counts: Counts,
    ) -> None:
        """`least_ttl`: seconds a claim lives at least; some renewals."""
        self._lane = lane
        self._worker = worker
        self._counts = counts
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[JobContext, HeldKey]] = []
        self._alone: list[tuple[JobContext, HeldKey]] = []
        """Members of a set that the store refused: asked for one by one."""
        self._asking = False
        self.told: Callable[[str], None] = lambda _outcome: None
        """Told what became of each key that was asked for."""
        self.settings = settings
        self.least_ttl = least_ttl

    async def warm(self) -> None:
        """Call the procedure with an empty set. Raises StoreRefused."""
        await self._lane.call("claim_runs", lambda session: session.claim_runs(self._worker, []))

    async def claim(self, ctx: JobContext, held: HeldKey) -> ClaimAnswer:
        """Ask for a key; see RunKeys."""
        held.answer = self._loop.create_future()
        # Before the question goes out: should nobody wait for the answer any more, the claim is released all the same.
        ctx.held_keys = (*ctx.held_keys, held)
        self._waiting.append((ctx, held))
        self._ask()
        return await asyncio.shield(held.answer)

    def _ask(self) -> None:
        if self._asking or not (self._alone or self._waiting):
            return
        self._asking = True
        if self._alone:
            asked = [self._alone.pop(0)]
        else:
            keys = first_of_each((held.claim for _, held in self._waiting), MAX_JOBS_PER_CALL)
            asked = [pair for pair in self._waiting if pair[1].claim in keys]
            self._waiting = [pair for pair in self._waiting if pair[1].claim not in keys]
        claims = [held.claim for _, held in asked]
        answers = self._lane.call("claim_runs", partial(_claim, self._worker, claims))
        answers.add_done_callback(partial(self._answered, asked))

    def _answered(
        self, asked: Sequence[tuple[JobContext, HeldKey]], future: "asyncio.Future[list[ClaimAnswer]]"
    ) -> None:
        self._asking = False
        error = future.exception()
        if error is None:
            for (ctx, held), answer in zip(asked, future.result(), strict=True):
                self._told(ctx, held, answer)
        elif len(asked) > 1 and isinstance(error, StoreRefused):
            self._alone += asked
        else:
            for ctx, held in asked:
                _let_go(ctx, held)
                assert held.answer is not None
                held.answer.set_exception(error)
        self._ask()

    def _told(self, ctx: JobContext, held: HeldKey, answer: ClaimAnswer) -> None:
        counts = self._counts
        if answer.state is Claiming.CLAIMED:
            counts.keys_missed += 1
            self.told("claimed")
        else:
            _let_go(ctx, held)
            if answer.state is Claiming.DONE:
                counts.keys_hit += 1
                self.told("completed_duplicate")
            elif answer.state is Claiming.BUSY:
                counts.keys_busy += 1
                self.told("in_progress_duplicate")
        assert held.answer is not None
        held.answer.set_result(answer)


class Leaving:
    """The keys that the executions of a set of jobs held, as they leave: some completed, some given up."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        """`claims`: of jobs whose handlers have ended."""
        completed: dict[tuple[str, str, int], Completion] = {}
        given_up: dict[tuple[str, str, int], RunClaim] = {}
        for claim in claims:
            if claim.context is not None:
                for held in claim.context.held_keys:
                    fence = (held.claim.key, held.claim.id, held.claim.lease)
                    if held.finished:
                        completed[fence] = held.completion()
                    else:
                        given_up[fence] = held.claim
        self.completed = list(completed.values())
        self.given_up = [claim for fence, claim in given_up.items() if fence not in completed]


def pending_of(claim: Claim) -> "asyncio.Future[ClaimAnswer] | None":
    """The question for a key that this claim's handler left unanswered when it ended."""
    if claim.context is not None:
        for held in claim.context.held_keys:
            if held.is_pending:
                return held.answer
    return None


def renewable(claims: Iterable[Claim]) -> list[RunClaim]:
    """The keys to renew: held by executions that have not been settled."""
    return [
        held.claim
        for claim in claims
        if claim.context is not None
        for held in claim.context.held_keys
        if not held.is_pending
    ]


def calls(claims: Sequence[Keyed]) -> Iterator[list[Keyed]]:
    """The claims in sets that one call may carry: none too large, no key twice."""
    left = list(claims)
    while left:
        some = first_of_each(left, MAX_JOBS_PER_CALL)
        yield [claim for claim in left if claim in some]
        left = [claim for claim in left if claim not in some]


def first_of_each(claims: Iterable[Keyed], limit: int) -> set[Keyed]:
    """The first claim of each key, as many as one call may carry."""
    chosen: dict[str, Keyed] = {}
    room = MAX_BYTES_PER_CALL
    for claim in claims:
        if claim.key not in chosen:
            room -= _BYTES_PER_CLAIM + len(getattr(claim, "result", None) or "")
            if len(chosen) == limit or (room < 0 and chosen):
                break
            chosen[claim.key] = claim
    return set(chosen.values())


def _claim(worker: Registration, claims: Sequence[RunClaim], session: Session) -> list[ClaimAnswer]:
    return session.claim_runs(worker, claims)


def _let_go(ctx: JobContext, held: HeldKey) -> None:
    ctx.held_keys = tuple(other for other in ctx.held_keys if other is not held)
