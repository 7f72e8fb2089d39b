"""What the maintenance process calls: ended workers, rescue, leadership, retention, roll-ups."""

from chokaq.store.records import CrashPolicies, DeathNotice, Leadership, Registration, Released
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling

_LONG_AGO_MS = 1_900 * 365 * 86_400_000


class MaintenanceOperations(Calling):
    """See `chokaq.store.protocol.Session`."""

    def release_worker(self, by: Registration, notice: DeathNotice, policies: CrashPolicies) -> Released:
        """End a worker and decide about at most 1,000 of the jobs it held."""
        [[row]] = self._call(
            "ReleaseWorker",
            by.slot,
            notice.worker_id,
            notice.queue,
            str(notice.cause),
            notice.text,
            documents.leases(notice.culprits),
            *documents.policies(policies),
        )
        return views.released(row)

    def recover_abandoned(self, by: Registration, queue: str, timeout_ms: int, cursor: str | None = None) -> Released:
        """One page of leases: Fetched jobs not renewed in time return to Pending."""
        worker, _, job = (cursor or "").partition(":")
        [[row]] = self._call("RecoverAbandoned", by.slot, queue, _age(timeout_ms), worker, job)
        return views.released(row)

    def archive_zombies(
        self, by: Registration, queue: str, timeout_ms: int, policies: CrashPolicies, cursor: str | None = None
    ) -> Released:
        """One page of leases: the crash policy applies to Processing jobs not renewed in time."""
        worker, _, job = (cursor or "").partition(":")
        [[row]] = self._call(
            "ArchiveZombies", by.slot, queue, _age(timeout_ms), *documents.policies(policies), worker, job
        )
        return views.released(row)

    def take_leadership(self, by: Registration, interval_ms: int) -> Leadership:
        """Take or renew the lead."""
        [[row]] = self._call("TakeLeadership", by.worker_id, interval_ms)
        leading, holder, term, age, now = row
        return Leadership(bool(leading), holder, term, age, views.aware(now))

    def hot_queues(self) -> list[str]:
        """Names of the queues that have live jobs or a row in Queues."""
        [rows] = self._call("ListHotQueues")
        return [row[0] for row in rows]

    def purge_archive(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete old Archive rows with all that hangs on them."""
        [[row]] = self._call("PurgeArchive", queue or "", _age(older_than_ms), size)
        return int(row[0])

    def purge_dlq(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete old DLQ rows with all that hangs on them."""
        [[row]] = self._call("PurgeDLQ", queue or "", _age(older_than_ms), size)
        return int(row[0])

    def purge_leftovers(self, size: int = 1_000) -> int:
        """Delete expired window keys, workers gone for a week, minute buckets past their keep, expired run claims."""
        [[row]] = self._call("PurgeLeftovers", size)
        return int(row[0])

    def roll_up(self) -> int:
        """Fold seconds older than two hours into minutes and lifetime totals."""
        [[row]] = self._call("RollUp")
        return int(row[0])


def _age(ms: int) -> int:
    """A duration that can be taken from a clock of our time."""
    return min(ms, _LONG_AGO_MS)
