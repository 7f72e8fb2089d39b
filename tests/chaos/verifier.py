"""The one judge of every scenario: holds the tables against the ledger and says, in sentences, what the rules forbid (design §3).

Pure: it reads an Evidence. Its own tests (test_verifier.py) forge evidence and expect to be told.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from tests.chaos.evidence import Evidence, Standing
from tests.chaos.ledger import Execution
from tests.chaos.workload import KINDS
from tests.support.lab import Row

CRASHED = "WorkerDied"


class Verdict(msgspec.Struct, kw_only=True):
    """What a scenario came to."""

    faults: list[str]
    """Broken rules, one sentence each; empty: all is as it should be."""
    jobs: int
    executions: int
    crashed: int
    """Executions that a death cut short, by the store's word."""
    handed_back: int
    """Executions given back without a charge, snoozes not counted."""
    repeated: int
    """Handlers that had come to a good end and ran again, since their process died before the store heard of it."""
    rescue_ms: list[int]
    """For each of the crashed: from the death of its process to the store's decision, sorted."""

    @property
    def text(self) -> str:
        """One line."""
        times = self.rescue_ms
        rescue = (
            f"crash to rescue {times[0]} / {times[len(times) // 2]} / {times[-1]} ms (least, median, most)"
            if times
            else "no crash to rescue from"
        )
        return (
            f"{self.jobs} jobs, {self.executions} executions, {self.crashed} crashed, {self.handed_back} handed back, "
            f"{self.repeated} repeated after success; {rescue}"
        )


def judge(evidence: Evidence) -> Verdict:
    """Look at every job."""
    return _Judge(evidence).verdict()


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.charges: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in evidence.attempts:
            self.charges[row["JobId"]][int(row["LeaseNumber"])] = row
        self.runs: dict[str, list[Execution]] = defaultdict(list)
        for run in sorted(evidence.executions.values(), key=lambda run: run.lease):
            self.runs[run.job].append(run)
        self.handed_back = self.repeated = 0

    def verdict(self) -> Verdict:
        faults = [*self._keys(), *self._strangers()]
        for job_id in self.evidence.accepted:
            faults += [f"{self._name(job_id)}: {fault}" for fault in self._job(job_id)]
        crashes = [row for row in self.evidence.attempts if row["ErrorType"] == CRASHED]
        return Verdict(
            faults=faults,
            jobs=len(self.evidence.accepted),
            executions=len(self.evidence.executions),
            crashed=len(crashes),
            handed_back=self.handed_back,
            repeated=self.repeated,
            rescue_ms=sorted(self._rescue_times(crashes)),
        )

    # ── the set as a whole ────────────────────────────────────────────────────────────────────────────────────────────
    def _strangers(self) -> Iterator[str]:
        known = self.evidence.accepted
        for job_id in self.evidence.standings:
            if job_id not in known:
                yield f"{job_id} stands in the store and was never accepted"
        for job_id in self.runs:
            if job_id not in known:
                yield f"{job_id} ran and was never accepted"

    def _keys(self) -> Iterator[str]:
        """One key, one live job at a time; a retained key, one job for ever."""
        holders: dict[str, list[str]] = defaultdict(list)
        for job_id, job in self.evidence.accepted.items():
            if job.key is not None:
                holders[job.key].append(job_id)
        for offered, holder in self.evidence.answered.items():
            if holder not in self.evidence.accepted:
                yield f"{offered} was answered with {holder}, which was never accepted"
        for key, ids in holders.items():
            scopes = {self.evidence.accepted[job_id].new.key_scope for job_id in ids}
            if len(ids) > 1 and KeyScope.RETAINED in scopes:
                yield f"the retained key {key} created {len(ids)} jobs: {ids}"
            if self._clocks_differ:
                continue
            spans = sorted(span for job_id in ids if (span := self._span(job_id)) is not None)
            for (_, ended, first), (began, _, second) in pairwise(spans):
                if began + self.evidence.rules.stamp_ms < ended:
                    yield f"{first} and {second} were live at once under the key {key}"

    def _span(self, job_id: str) -> tuple[int, int, str] | None:
        rows = self.evidence.standings.get(job_id, ())
        if len(rows) != 1 or rows[0].pillar is Pillar.HOT:
            return None
        row = rows[0].row
        return row["CreatedAtUtc"], row.get("FinishedAtUtc") or row.get("FailedAtUtc") or 0, job_id

    # ── one job ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _job(self, job_id: str) -> Iterator[str]:
        rows = self.evidence.standings.get(job_id, ())
        if len(rows) != 1:
            yield "lost" if not rows else f"stands in {[standing.pillar.value for standing in rows]}"
            return
        (standing,) = rows
        yield from self._early(job_id, standing)
        yield from self._order(job_id)
        yield from self._charges(job_id, standing)
        yield from self._executions(job_id, standing)
        yield from self._end(job_id, standing)

    def _early(self, job_id: str, standing: Standing) -> Iterator[str]:
        evidence, row = self.evidence, standing.row
        due = int(row["CreatedAtUtc"]) + evidence.accepted[job_id].new.delay_ms
        for run in self.runs[job_id]:
            host = run.began_ns // 1_000_000 + evidence.wall_minus_mono_ms + evidence.database_minus_host_ms
            latest = host + evidence.rules.clock_ahead_ms + evidence.rules.slack_ms
            if latest < due:
                yield f"lease {run.lease} began {due - host} ms before it was due"
        if standing.pillar is not Pillar.HOT and row["StartedAtUtc"] is not None and not self._clocks_differ:
            early = int(row["DueAtUtc"]) - int(row["StartedAtUtc"])
            if early > 0:
                yield f"its last start is {early} ms before its due time"

    @property
    def _clocks_differ(self) -> bool:
        return self.evidence.rules.live_workers_may_lose_leases

    def _order(self, job_id: str) -> Iterator[str]:
        for run in self.runs[job_id]:
            if run.times > 1:
                yield f"began {run.times} times under lease {run.lease}"
        for first, second in pairwise(self.runs[job_id]):
            if self._clocks_differ:
                # A lease may be lost between the store's start and the handler's.
                continue
            if second.began_ns < first.began_ns:
                yield f"lease {second.lease} ran before lease {first.lease}"
            over = first.ended_ns is not None and first.ended_ns <= second.began_ns
            cut = first.ended_ns is None and first.pid in self.evidence.deaths
            if not (over or cut):
                yield f"lease {second.lease} began while lease {first.lease} was still running in process {first.pid}"

    def _charges(self, job_id: str, standing: Standing) -> Iterator[str]:
        """AttemptCount and CrashCount against the attempts' records, and every record against the ledger."""
        charges = self.charges[job_id]
        crashes = sum(row["ErrorType"] == CRASHED for row in charges.values())
        if int(standing.row["CrashCount"]) != crashes:
            yield f"CrashCount is {standing.row['CrashCount']}, its records tell of {crashes} crashes"
        succeeded = standing.pillar is Pillar.ARCHIVE
        allowed = {len(charges) + succeeded}
        if standing.pillar is Pillar.DLQ and standing.row["Status"] == JobStatus.CANCELLED:
            # Cancelled instead of handed back: the execution under way leaves no record.
            allowed.add(len(charges) + 1)
        if standing.attempts not in allowed:
            yield (
                f"AttemptCount is {standing.attempts} with {len(charges)} charged attempts on record"
                f"{' and a success' if succeeded else ''}"
            )
        for lease, row in charges.items():
            yield from self._charge(job_id, lease, row)

    def _charge(self, job_id: str, lease: int, row: Row) -> Iterator[str]:
        evidence = self.evidence
        run = evidence.executions.get((job_id, lease))
        kind, worker = row["ErrorType"], row["WorkerId"]
        if run is not None and run.worker != worker:
            yield f"lease {lease} is charged to {worker} and was run by {run.worker}"
        if kind == CRASHED:
            if not evidence.died(worker) and not evidence.rules.live_workers_may_lose_leases:
                yield f"lease {lease} is recorded as a crash of {worker}, which did not die ({row['ErrorMessage']})"
            return
        if kind == "HardLimit":
            if not evidence.died(worker):
                yield f"lease {lease} is recorded as stopped at its hard limit, but {worker} was not killed"
            return
        if kind == "Cancelled":
            if job_id not in evidence.cancels:
                yield f"lease {lease} is recorded as cancelled, which nobody asked for"
            return
        wanted = "cancelled:timeout" if kind == "ExecutionTimeout" else kind.rpartition(".")[2]
        if run is None or run.how != wanted:
            how = "did not run" if run is None else f"ended {run.how}"
            yield f"lease {lease} is charged for {kind}, by the ledger it {how}"

    def _executions(self, job_id: str, standing: Standing) -> Iterator[str]:
        """Each execution is the success, or charged, or refunded for a reason; and each was told the right attempt number."""
        charges = self.charges[job_id]
        for run in self.runs[job_id]:
            before = sum(lease < run.lease for lease in charges)
            if run.attempt != before + 1:
                yield f"lease {run.lease} ran as attempt {run.attempt} after {before} charged ones"
            final = run.lease == standing.lease and standing.pillar is not Pillar.HOT
            if run.how == "ok" and not final:
                self.repeated += 1
            if run.lease in charges or (final and standing.pillar is Pillar.ARCHIVE):
                continue
            if run.how == "Snooze":
                continue
            if self._was_handed_back(run) or (final and standing.row["Status"] == JobStatus.CANCELLED):
                self.handed_back += 1
                continue
            yield f"lease {run.lease} in process {run.pid} ended {run.how}, was not charged, and nothing tells why"

    def _was_handed_back(self, run: Execution) -> bool:
        told = (run.how or "").startswith("cancelled:shutdown")
        return told or (run.pid in self.evidence.deaths and self.evidence.ended_deliberately(run.worker))

    def _end(self, job_id: str, standing: Standing) -> Iterator[str]:
        """The state it ended in, and the reason, are those that its kind and its history allow."""
        job, row = self.evidence.accepted[job_id], standing.row
        kind = KINDS[job.kind]
        if standing.pillar is Pillar.HOT:
            yield f"did not end: status {row['Status']}, lease {standing.lease}, due {row['DueAtUtc']}"
            return
        cancel = self.evidence.cancels.get(job_id)
        last = self.evidence.executions.get((job_id, standing.lease))
        if standing.pillar is Pillar.ARCHIVE:
            if kind.status is not JobStatus.SUCCEEDED:
                yield f"succeeded, which a {job.kind} job cannot"
            if cancel == "cancelled":
                yield "succeeded after its cancellation had been answered as done"
            if last is None or last.how != "ok":
                yield f"succeeded under lease {standing.lease}, by the ledger it {'never ran' if last is None else last.how}"
            return
        status, reason = JobStatus(row["Status"]), FailureReason(row["FailureReason"])
        if status is JobStatus.CANCELLED:
            if cancel not in ("cancelled", "requested") or reason is not FailureReason.CANCELLED:
                yield f"ended Cancelled / {reason.label}; the answer to its cancellation was {cancel}"
            return
        if cancel == "cancelled":
            yield f"ended {status.label} after its cancellation had been answered as done"
        if status is JobStatus.ZOMBIE:
            yield from self._zombie(job_id, standing, reason)
        elif (status, reason) != (kind.status, kind.reason):
            yield f"ended {status.label} / {reason.label}; a {job.kind} job ends {kind.status.label}"
        elif reason in (FailureReason.TRANSIENT, FailureReason.THROTTLED) and standing.attempts < kind.max_attempts:
            yield f"given up after {standing.attempts} of {kind.max_attempts} attempts"

    def _zombie(self, job_id: str, standing: Standing, reason: FailureReason) -> Iterator[str]:
        kind, crashes = KINDS[self.evidence.accepted[job_id].kind], int(standing.row["CrashCount"])
        last = self.charges[job_id].get(standing.lease)
        if last is None or last["ErrorType"] != CRASHED:
            yield f"ended as a zombie without a crash under its last lease {standing.lease}"
        if crashes >= kind.crash_limit:
            expected = FailureReason.POISON
        elif kind.on_crash == "dead_letter" or standing.attempts >= kind.max_attempts:
            expected = FailureReason.ZOMBIE
        else:
            yield f"ended as a zombie after {crashes} crashes and {standing.attempts} attempts: it had to be tried again"
            return
        if reason is not expected:
            yield f"ended Zombie / {reason.label}, not {expected.label}"

    # ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _rescue_times(self, crashes: list[Row]) -> Iterator[int]:
        for row in crashes if not self._clocks_differ else ():
            died = self.evidence.deaths.get(self.evidence.pid_of(row["WorkerId"]) or 0)
            if died is not None:
                yield int(row["AtUtc"]) - self.evidence.database_minus_host_ms - died

    def _name(self, job_id: str) -> str:
        return f"{self.evidence.accepted[job_id].kind} {job_id}"
