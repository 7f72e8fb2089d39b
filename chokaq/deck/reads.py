"""Everything pages and the API may ask. Answers are shared between all who ask the same within a second."""

from collections.abc import Mapping
from typing import Literal

from chokaq.deck.shown import AuditPage, Charts, Circuits, JobPage, JobsPage, Overview, QueueRow, Search, Setting, WorkerRow
from chokaq.operations.repair import Preview


class Reads:
    """Reads for one Deck. Every method may raise OperationError (out of bounds; the text is for people) or StoreError (the
    database is away: keep what you show; `live.state` says since when)."""

    async def overview(self) -> Overview:
        """Totals, rates, lag, health, top errors."""
        raise NotImplementedError

    async def charts(self, span: Literal["hour", "day"] = "hour", queue: str | None = None) -> Charts:
        """Series from the outcome counters."""
        raise NotImplementedError

    async def queues(self) -> list[QueueRow]:
        """Every queue, by name; deactivated ones too."""
        raise NotImplementedError

    async def jobs(self, where: Search, limit: int = 50, after: str | None = None) -> JobsPage:
        """One page of a list; `limit`: 1 to 500."""
        raise NotImplementedError

    async def job(self, job_id: str) -> JobPage:
        """Everything about a job."""
        raise NotImplementedError

    async def payload(self, job_id: str) -> str:
        """The whole payload, as stored."""
        raise NotImplementedError

    async def preview(self, where: Search, action: str, maximum: int = 100) -> Preview:
        """What an action by filter (`resurrect`, `drop` or `purge`) on the DLQ would touch now."""
        raise NotImplementedError

    async def workers(self, *, ended: bool = False) -> list[WorkerRow]:
        """The registry, newest first."""
        raise NotImplementedError

    async def circuits(self) -> Circuits:
        """Every circuit that met a failure or an order, the open ones first."""
        raise NotImplementedError

    async def audit(
        self, *, target: str | None = None, actor: str | None = None, action: str | None = None, limit: int = 50,
        after: str | None = None,
    ) -> AuditPage:  # fmt: skip
        """One page of the audit log; `limit`: 1 to 200."""
        raise NotImplementedError

    async def settings(self) -> list[Setting]:
        """Every option as it holds, with where it came from; passwords hidden."""
        raise NotImplementedError


def search_of(query: Mapping[str, str]) -> Search:
    """A search out of the parameters of a URL. Raises OperationError naming the parameter."""
    raise NotImplementedError


def to_query(where: Search) -> dict[str, str]:
    """The parameters of a URL that mean this search; those that say nothing are left out."""
    raise NotImplementedError
