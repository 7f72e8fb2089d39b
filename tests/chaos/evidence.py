"""Everything the verifier judges by: what was accepted, what the tables hold, what the handlers wrote down, who died when."""

from collections.abc import Mapping, Sequence

import msgspec

from chokaq.lifecycle.states import Pillar
from tests.chaos.ledger import Execution
from tests.chaos.workload import Job
from tests.support.lab import Row


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A job's row at the end."""

    pillar: Pillar
    row: Row

    @property
    def lease(self) -> int:
        """Lease number of its last claim."""
        return int(self.row["LeaseNumber"])

    @property
    def attempts(self) -> int:
        """AttemptCount."""
        return int(self.row["AttemptCount"])


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario allows beyond the ordinary."""

    live_workers_may_lose_leases: bool = False
    """A worker that lives may be taken for dead: its clock, or that of its judge, is wrong."""
    clock_ahead_ms: int = 0
    """The clock that decides may have been this far ahead of the host's."""
    slack_ms: int = 0
    """Uncertainty between the host's clock and the database's."""
    stamp_ms: int = 0
    """How long before it takes place a change may be stamped: a procedure reads the clock once, when it is entered."""


class Evidence(msgspec.Struct, kw_only=True):
    """One scenario, ended and quiet."""

    accepted: Mapping[str, Job]
    """By id: every job the store said it had created."""
    answered: Mapping[str, str]
    """Enqueues answered with another job: own id to that job's."""
    cancels: Mapping[str, str]
    """By job id: what CancelJobs answered."""
    standings: Mapping[str, Sequence[Standing]]
    """By job id: the rows of it in all pillars."""
    attempts: Sequence[Row]
    """The rows of JobAttempts."""
    workers: Mapping[str, Row]
    """The rows of Workers, by id."""
    executions: Mapping[tuple[str, int], Execution]
    """The ledger, by (job id, lease)."""
    deaths: Mapping[int, int]
    """By pid: when a process died that was killed, or killed itself, before it had drained (host's clock, ms)."""
    wall_minus_mono_ms: int
    """Turns the ledger's monotonic times into the host's clock."""
    database_minus_host_ms: int = 0
    """The database's clock against the host's."""
    rules: Rules = Rules()

    def pid_of(self, worker: str | None) -> int | None:
        """The process of a worker id; None when the registry does not know it."""
        row = self.workers.get(worker or "")
        return None if row is None else int(row["Pid"])

    def died(self, worker: str | None) -> bool:
        """True when the worker's process ended other than by its own decision."""
        return self.pid_of(worker) in self.deaths

    def ended_deliberately(self, worker: str | None) -> bool:
        """True when the worker was drained, or killed at the end of a drain or for a limit: it is charged nothing."""
        cause = (self.workers.get(worker or "") or {}).get("EndedCause") or ""
        return cause.startswith(("cause shutdown", "cause limit"))
