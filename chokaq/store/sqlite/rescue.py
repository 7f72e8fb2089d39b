"""The operations that take leases from workers that have ended or fallen silent."""

from chokaq.store.records import CrashPolicies, DeathNotice, Registration, Released
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.crash import Verdicts
from chokaq.store.sqlite.moves import HotJob, Moves
from chokaq.store.sqlite.statements import load

PAGE = 1_000
"""Leases looked at, or jobs moved, in one call."""

_RELEASE, _ABANDONED, _ZOMBIES = load("ReleaseWorker"), load("RecoverAbandoned"), load("ArchiveZombies")


class RescueOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def release_worker(self, by: Registration, notice: DeathNotice, policies: CrashPolicies) -> Released:
        """End a worker and decide about at most 1,000 of the jobs it held."""
        key = {"worker": notice.worker_id, "queue": notice.queue, "cause": notice.text[:255], "size": PAGE}
        culprits = {(held.id, held.lease) for held in notice.culprits}
        with self._writing() as (connection, now):
            connection.execute(_RELEASE["end"], key | {"now": now})
            moves = Moves()
            verdicts = Verdicts(moves, now)
            held = connection.execute(_RELEASE["held"], key).fetchall()
            for job in map(HotJob._make, held):
                verdicts.ended(job, notice, policies, culprits)
            moves.apply(connection, by.slot, now)
            return verdicts.released(done=len(held) < PAGE)

    def recover_abandoned(self, by: Registration, queue: str, timeout_ms: int, cursor: str | None = None) -> Released:
        """One page of leases: Fetched jobs not renewed in time return to Pending."""
        page, after = self._page(_ABANDONED["page"], queue, cursor)
        if not page:
            return Released()
        with self._writing() as (connection, now):
            moves = Moves()
            verdicts = Verdicts(moves, now)
            silent = connection.execute(
                _ABANDONED["match"], {"jobs": page, "timeout": timeout_ms, "now": now}
            ).fetchall()
            for job in map(HotJob._make, silent):
                verdicts.hand_back(job)
            moves.apply(connection, by.slot, now)
            return verdicts.released(done=after is None, cursor=after)

    def archive_zombies(
        self, by: Registration, queue: str, timeout_ms: int, policies: CrashPolicies, cursor: str | None = None
    ) -> Released:
        """One page of leases: the crash policy applies to Processing jobs not renewed in time."""
        page, after = self._page(_ZOMBIES["page"], queue, cursor)
        if not page:
            return Released()
        key = {"jobs": page, "timeout": timeout_ms, "queue": queue}
        with self._writing() as (connection, now):
            moves = Moves()
            verdicts = Verdicts(moves, now)
            for job in map(HotJob._make, connection.execute(_ZOMBIES["match"], key | {"now": now}).fetchall()):
                verdicts.crashed(job, policies, f"no heartbeat for {now - (job.heartbeat or now)} ms from its worker")
            moves.apply(connection, by.slot, now)
            return verdicts.released(done=after is None, cursor=after)

    def _page(self, sql: str, queue: str, cursor: str | None) -> tuple[str | None, str | None]:
        """The ids of the next leases as a document, and the cursor behind them (None: the last page)."""
        worker, _, job_id = (cursor or "").partition(":")
        rows = self._select(sql, {"queue": queue, "worker": worker, "id": job_id, "size": PAGE})
        after = f"{rows[-1][0]}:{rows[-1][1]}" if len(rows) == PAGE else None
        return (document([row[1] for row in rows]) if rows else None), after
