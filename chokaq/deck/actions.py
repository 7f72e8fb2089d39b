"""Everything pages and the API may do. The operations check the role again, and write the audit log.

Bounds, typed confirmations and reasons are those of the CLI. `typed` is what the operator typed into the dialog: when
`confirmation(…)` names a phrase and `typed` is not it, OperationError is raised and nothing is changed.
"""

from collections.abc import Sequence

from chokaq.deck.users import User
from chokaq.operations.confirm import Action, Confirmation
from chokaq.store.circuits import CircuitOrder
from chokaq.store.records import CancelAnswer, QueueView
from chokaq.store.repairs import RepairAnswer


class Actions:
    """Actions of one Deck. Every method raises OperationError (its text is for people), NotAllowed (a viewer) or StoreError."""

    def confirmation(self, action: Action, count: int, *, by_filter: bool = False) -> Confirmation | None:
        """What has to be typed before an action on jobs; None: nothing."""
        raise NotImplementedError

    def queue_confirmation(self, action: Action, queue: str) -> Confirmation:
        """What has to be typed before an action on a queue (`deactivate`)."""
        raise NotImplementedError

    async def cancel(self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "") -> list[CancelAnswer]:
        """Cancel jobs: waiting ones at once, running ones are told."""
        raise NotImplementedError

    async def resurrect(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "", *, by_filter: bool = False,
        payload: str | None = None, tags: str | None = None, priority: int | None = None, without_key: bool = False,
    ) -> list[RepairAnswer]:  # fmt: skip
        """DLQ → Pending. `payload`, `tags`, `priority`: edited in the same step (one job; None: as it is)."""
        raise NotImplementedError

    async def drop(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "", *, by_filter: bool = False
    ) -> list[RepairAnswer]:
        """Decide that stopped jobs never run. The reason is required."""
        raise NotImplementedError

    async def purge(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "", *, by_filter: bool = False
    ) -> list[RepairAnswer]:
        """Delete jobs that have ended."""
        raise NotImplementedError

    async def edit(
        self, user: User, job_id: str, reason: str | None, *, payload: str | None = None, tags: str | None = None,
        priority: int | None = None,
    ) -> RepairAnswer:  # fmt: skip
        """Change a job where it stands (None: as it is); the payload is held against the contract of its type where known."""
        raise NotImplementedError

    async def check_payload(self, job_id: str, payload: str) -> str | None:
        """Why a payload would be refused, in words; None: it fits, or its type is not known here."""
        raise NotImplementedError

    async def pause(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Claim nothing new from the queue."""
        raise NotImplementedError

    async def resume(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Undo a pause."""
        raise NotImplementedError

    async def deactivate(self, user: User, queue: str, reason: str | None, typed: str = "") -> QueueView:
        """Take the queue out of service."""
        raise NotImplementedError

    async def activate(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Undo a deactivation."""
        raise NotImplementedError

    async def set_queue(self, user: User, queue: str, reason: str | None, **overrides: float | None) -> QueueView:
        """Write overrides: `max_workers`, `fleet_max_workers`, `execution_timeout`, `zombie_timeout` (seconds). None clears one."""
        raise NotImplementedError

    async def drain(self, user: User, worker_id: str, reason: str | None) -> RepairAnswer:
        """Ask a worker to end once its replacement is there."""
        raise NotImplementedError

    async def force_circuit(self, user: User, type_key: str, order: str, reason: str | None) -> CircuitOrder | None:
        """`open`, `closed` or `clear`; the order that stands now."""
        raise NotImplementedError
