"""The leader's housekeeping: leadership, retention, roll-ups."""

from chokaq.store.records import Leadership, Registration
from chokaq.store.sqlite.clock import from_ms
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.statements import load

KEEP_WORKERS_MS = 7 * 86_400_000
KEEP_SECONDS_MS = 2 * 3_600_000
KEEP_MINUTES_MS = 30 * 86_400_000
KEEP_LOST_CLAIMS_MS = 86_400_000
KEEP_EVENTS_MS = 7 * 86_400_000
"""A claim of an unfinished run is left that long after its expiry: a holder that comes back may renew its own."""
PASSES_MISSED = 3
"""A leader that has not passed for that many intervals loses the lead."""
_CHUNK_MS = 600_000
"""Seconds folded in one transaction, so that no roll-up holds the writers up for long."""

_LEAD, _HOT_QUEUES = load("TakeLeadership"), load("ListHotQueues")["list"]
_ARCHIVE, _DLQ, _LEFTOVERS, _ROLL = load("PurgeArchive"), load("PurgeDLQ"), load("PurgeLeftovers"), load("RollUp")


class MaintenanceOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def take_leadership(self, by: Registration, interval_ms: int) -> Leadership:
        """Take or renew the lead."""
        me = by.worker_id
        with self._writing() as (connection, now):
            key = {"holder": me, "now": now}
            current = connection.execute(_LEAD["current"]).fetchone()
            if current is None:
                connection.execute(_LEAD["first"], key)
                return Leadership(True, me, 1, None, from_ms(now))
            holder, term, last = current
            age = max(now - last, 0)
            if holder == me:
                connection.execute(_LEAD["renew"], key)
            elif age > PASSES_MISSED * interval_ms:
                connection.execute(_LEAD["take"], key)
                holder, term = me, term + 1
            return Leadership(holder == me, holder, term, age, from_ms(now))

    def hot_queues(self) -> list[str]:
        """Names of the queues that have live jobs or a row in Queues."""
        return [row[0] for row in self._select(_HOT_QUEUES)]

    def purge_archive(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete old Archive rows with all that hangs on them."""
        return self._purge(_ARCHIVE, queue, older_than_ms, size)

    def purge_dlq(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete old DLQ rows with all that hangs on them."""
        return self._purge(_DLQ, queue, older_than_ms, size)

    def purge_leftovers(self, size: int = 1_000) -> int:
        """Delete expired window keys and run claims, workers gone for a week, old minute buckets, circuits of ended workers, what
        circuits did long ago or too often, sign-outs that are over."""
        with self._writing() as (connection, now):
            keys = connection.execute(_LEFTOVERS["keys"], {"now": now, "size": size}).rowcount
            workers = connection.execute(
                _LEFTOVERS["workers"], {"before": now - KEEP_WORKERS_MS, "size": size}
            ).rowcount
            buckets = connection.execute(
                _LEFTOVERS["buckets"], {"before": now - KEEP_MINUTES_MS, "size": size}
            ).rowcount
            circuits = connection.execute(_LEFTOVERS["circuits"], {"size": size}).rowcount
            events = connection.execute(_LEFTOVERS["events"], {"before": now - KEEP_EVENTS_MS, "size": size}).rowcount
            events += connection.execute(_LEFTOVERS["many"], {"size": size}).rowcount
            signouts = connection.execute(_LEFTOVERS["signouts"], {"now": now, "size": size}).rowcount
            claims = sum(
                connection.execute(
                    _LEFTOVERS["claims"], {"state": state, "before": now - patience, "size": size}
                ).rowcount
                for state, patience in (("done", 0), ("running", KEEP_LOST_CLAIMS_MS))
            )
            return keys + workers + buckets + circuits + events + signouts + claims

    def roll_up(self) -> int:
        """Fold seconds older than two hours into minutes and lifetime totals."""
        folded = 0
        while True:
            with self._writing() as (connection, now):
                # Whole minutes only: a minute is then written by one transaction.
                limit = (now - KEEP_SECONDS_MS) // 60_000 * 60_000
                oldest = connection.execute(_ROLL["oldest"], {"before": limit}).fetchone()
                if oldest is None:
                    return folded
                key = {"before": min(limit, (oldest[0] + _CHUNK_MS) // 60_000 * 60_000)}
                connection.execute(_ROLL["minutes"], key)
                connection.execute(_ROLL["totals"], key)
                folded += connection.execute(_ROLL["seconds"], key).rowcount

    def _purge(self, sql: dict[str, str], queue: str | None, older_than_ms: int, size: int) -> int:
        with self._writing() as (connection, now):
            key = {"queue": queue, "before": now - older_than_ms, "size": size}
            old = [row[0] for row in connection.execute(sql["old"], key).fetchall()]
            if old:
                ids = {"ids": document(old)}
                for statement in ("rows", "keys", "notes", "attempts"):
                    connection.execute(sql[statement], ids)
            return len(old)
