"""Who leads the fleet's maintenance, and whether the leader may judge others now."""

import structlog

from chokaq.store.protocol import Session
from chokaq.store.records import Leadership, Registration

log = structlog.get_logger("chokaq")


COMEBACK = 5.0
"""Seconds that live workers may need, once the store is back, until they have renewed their leases: their lanes pause for up to
2 s between two tries, connect anew, and are many. Two heartbeats are less than that where a queue beats fast."""


def outage(own_elapsed: float | None, store_elapsed: float | None, interval: float, *, broken: bool) -> str | None:
    """Why heartbeats may be old although their workers live; None when they can be trusted. All in seconds.

    `own_elapsed`: since this process's previous pass, by its own clock; None for its first. `store_elapsed`: the same span by
    the database's clock. `broken`: this process lost its connection in between. The two spans are compared, not the two clocks:
    a host whose clock is simply wrong must not keep the fleet from being rescued.
    """
    if own_elapsed is None:
        return "first pass"
    if own_elapsed > 2 * interval:
        return f"no pass for {own_elapsed:.0f} s"
    if store_elapsed is not None and abs(store_elapsed - own_elapsed) > interval:
        return f"the database's clock moved {store_elapsed:.0f} s while ours moved {own_elapsed:.0f} s"
    if broken:
        return "the store was away"
    return None


class Lead:
    """This process's part in leadership."""

    def __init__(self, interval: float, heartbeat: float) -> None:
        self.interval = interval
        """Seconds between two passes."""
        self.leading = False
        self.answer: Leadership | None = None
        """What the store said at the last pass; None before the first."""
        self._hold = max(2 * heartbeat, COMEBACK)
        self._judge_from = 0.0
        self._last_pass: float | None = None
        self._last_store: float | None = None
        self._last_breaks = 0

    def take(self, session: Session, me: Registration, now: float, breaks: int) -> float:
        """One pass: take or renew the lead. Returns the seconds to the next pass. `breaks`: connections lost so far."""
        answer = session.take_leadership(me, round(self.interval * 1000))
        self.answer = answer
        store_now = answer.now.timestamp()
        own = None if self._last_pass is None else now - self._last_pass
        stored = None if self._last_store is None else store_now - self._last_store
        why = outage(own, stored, self.interval, broken=breaks != self._last_breaks)
        self._last_pass, self._last_store, self._last_breaks = now, store_now, breaks
        if answer.leading != self.leading:
            log.info("leadership", leading=answer.leading, holder=answer.holder, term=answer.term)
        self.leading = answer.leading
        if why is not None:
            self._judge_from = now + self._hold
            if self.leading:
                log.info("judging_postponed", why=why, seconds=self._hold)
        return min(self.interval, self._hold) if why is not None else self.interval

    def may_judge(self, now: float) -> bool:
        """True when this process leads and heartbeats can be trusted."""
        return self.leading and now >= self._judge_from
