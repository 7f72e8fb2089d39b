"""The idempotency middleware: of all jobs with one key, the work of one is done, and remembered.

A key is claimed in the store before the handler runs. A job that finds the marker of a completed run is done without running;
one that finds another job's unfinished run is put off, uncharged. When the run ends the worker turns the claim into a marker or
gives it up, together with the job's own outcome; whatever ended the handler has no say in that.
"""

import asyncio
import math
import random
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from chokaq.jobs.codec import encode
from chokaq.jobs.context import JobContext
from chokaq.jobs.envelope import MAX_KEY, check_key, utf16_length
from chokaq.jobs.errors import RegistrationError
from chokaq.jobs.registry import Next
from chokaq.jobs.runkeys import HeldKey, RunKeys
from chokaq.lifecycle.errors import FatalError, Snooze
from chokaq.lifecycle.states import CancelReason
from chokaq.store.claims import LONGEST_TTL_MS, ClaimAnswer, Claiming, RunClaim

if TYPE_CHECKING:
    from chokaq.config.settings import IdempotencySettings

_log = structlog.get_logger("chokaq")
MAX_RESULT_BYTES = 100_000
"""A larger result is not kept."""

Duration = float | timedelta
Key = str | Callable[[Any], object]
Ttl = Duration | Callable[[Any], Duration | None] | None


class Idempotent:
    """The middleware; made by `idempotent(…)`."""

    def __init__(
        self, *, key: Key, ttl: Ttl, in_progress_ttl: Duration | None, keep_result: bool, scope: str | None
    ) -> None:
        if not (callable(key) or (isinstance(key, str) and key.strip())):
            raise RegistrationError(f"idempotent: `key` must be a field's name or a function of the job, not {key!r}")
        self._key = key
        self._ttl = ttl
        self._fixed_ttl = None if ttl is None or callable(ttl) else _seconds("ttl", ttl)
        self._in_progress = None if in_progress_ttl is None else _seconds("in_progress_ttl", in_progress_ttl)
        self._keep_result = keep_result
        self._scope = scope

    def check(self, settings: "IdempotencySettings") -> None:
        """Raises RegistrationError when the time to live that the code names lies outside the settings' bounds."""
        if self._fixed_ttl is not None and (problem := _out_of_bounds(self._fixed_ttl, settings)):
            raise RegistrationError(f"idempotent: {problem}")

    async def __call__(self, job: Any, ctx: JobContext, go_on: Next) -> None:
        """Run the layers inside once per key."""
        keys, key = ctx.keys, self._key_of(job, ctx)
        if key is None or keys is None:
            await go_on()
            return
        lives = max(self._in_progress or keys.settings.in_progress_ttl, keys.least_ttl)
        held = HeldKey(RunClaim(key, ctx.id, ctx.lease, _ms(lives)), self._result_ttl_ms(job, keys.settings))
        answer = await _claimed(keys, ctx, held)
        if answer.state is Claiming.DONE:
            _log.debug("duplicate_skipped", job=ctx.id, type=ctx.type_key, completed_by=answer.holder)
            return
        if answer.state is not Claiming.CLAIMED:
            raise Snooze(_patience(answer, keys.settings.busy_delay))
        await go_on()
        held.finish(_result(ctx) if self._keep_result else None)

    def _key_of(self, job: Any, ctx: JobContext) -> str | None:
        """The key as it is stored; None: this job has none, and simply runs."""
        value = _field(job, self._key, ctx) if isinstance(self._key, str) else self._key(job)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | UUID):
            raise TypeError(f"an idempotency key must be a text, a whole number, a UUID or None, not {value!r}")
        given = str(value).strip()
        # Two types that use the same numbers must not take each other's work for done.
        text = f"{ctx.type_key.lower() if self._scope is None else self._scope}:{given}"
        if given and utf16_length(text) > MAX_KEY:
            text = f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
        return check_key(text if given else given)

    def _result_ttl_ms(self, job: Any, settings: "IdempotencySettings") -> int | None:
        given = self._ttl(job) if callable(self._ttl) else self._fixed_ttl
        if given is None:
            return None if settings.result_ttl is None else _ms(settings.result_ttl)
        seconds = _seconds("ttl", given, FatalError)
        if problem := _out_of_bounds(seconds, settings):
            raise FatalError(f"idempotent: {problem}")
        return None if seconds == math.inf else _ms(seconds)


def idempotent(
    *,
    key: Key,
    ttl: Ttl = None,
    in_progress_ttl: Duration | None = None,
    keep_result: bool = False,
    scope: str | None = None,
) -> Idempotent:
    """A middleware under which the jobs of one key do their work once.

    For one type: `@app.job("pay.v1", middleware=[idempotent(key="order_id")])`; for all: `app.middleware(idempotent(key=…))`.

    `key`: a field's name, or a function of the job; its value is a text, a whole number or a UUID, and None means that this job
    simply runs. Jobs of different types never share a key, unless they name the same `scope`.
    `ttl`: how long a completed run is remembered: seconds, a timedelta, math.inf, or a function of the job; None: the setting
    `idempotency.result_ttl`. `in_progress_ttl`: how long a run that was lost with its process keeps others away (it is renewed
    while the run lives); None: the setting. `keep_result`: keep what the handler returned (anything JSON holds, at most 100,000
    bytes), to be read with `chokaq jobs show`.

    A duplicate of a completed run succeeds without running. A duplicate of an unfinished one is put off by
    `idempotency.busy_delay`, uncharged, as long as `max_job_age` allows. A run that fails, is cancelled or handed back gives the
    key up, so that it, or another job, runs. The job that holds a key enters its own claim again.

    Raises RegistrationError for options that cannot be meant.
    """
    return Idempotent(key=key, ttl=ttl, in_progress_ttl=in_progress_ttl, keep_result=keep_result, scope=scope)


async def _claimed(keys: RunKeys, ctx: JobContext, held: HeldKey) -> ClaimAnswer:
    try:
        return await keys.claim(ctx, held)
    except asyncio.CancelledError:
        if ctx.cancel_reason is CancelReason.TIMEOUT:
            # All its time went by waiting for the store: the work has not begun, and its job is not to blame.
            raise Snooze(keys.settings.busy_delay) from None
        raise


def _field(job: Any, name: str, ctx: JobContext) -> object:
    try:
        return job[name] if isinstance(job, dict) else getattr(job, name)
    except (KeyError, AttributeError):
        raise FatalError(f"idempotent: a job of {ctx.type_key} has no field {name!r} to take its key from") from None


def _patience(answer: ClaimAnswer, delay: float) -> float:
    """Seconds until another look; spread, so that many duplicates do not look at once."""
    rest = math.inf if answer.expires_in_ms is None else answer.expires_in_ms / 1000
    return min(delay * random.uniform(0.8, 1.2), max(rest, 0.05))


def _result(ctx: JobContext) -> str | None:
    """What the handler returned, as it is kept; a result that cannot be kept does not make the run a failure."""
    if ctx.returned is None:
        return None
    try:
        text = encode(ctx.returned)
    except FatalError as error:
        _log.warning("result_not_kept", job=ctx.id, type=ctx.type_key, error=str(error))
        return None
    if len(text) > MAX_RESULT_BYTES:
        _log.warning("result_not_kept", job=ctx.id, type=ctx.type_key, bytes=len(text), most=MAX_RESULT_BYTES)
        return None
    return text


def _out_of_bounds(seconds: float, settings: "IdempotencySettings") -> str | None:
    least, most = settings.min_result_ttl, settings.max_result_ttl
    if least is not None and seconds < least:
        return f"a ttl of {seconds:g} s is below idempotency.min_result_ttl ({least:g} s)"
    if most is not None and seconds > most:
        return f"a ttl of {seconds:g} s is above idempotency.max_result_ttl ({most:g} s)"
    return None


def _seconds(name: str, value: object, error: type[Exception] = RegistrationError) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise error(f"idempotent: `{name}` must be a timedelta or seconds above 0, not {value!r}")
    if name != "ttl" and seconds == math.inf:
        raise error(f"idempotent: `{name}` must have an end: a run that was lost would keep others away for ever")
    return float(seconds)


def _ms(seconds: float) -> int:
    return round(min(seconds * 1000, LONGEST_TTL_MS))
