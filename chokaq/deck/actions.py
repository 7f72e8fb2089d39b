"""Everything pages and the API may do. The operations check the role again, and write the audit log.

Bounds, typed confirmations and reasons are those of the CLI. `typed` is what the operator typed into the dialog: when
`confirmation(…)` names a phrase and `typed` is not it, OperationError is raised and nothing is changed.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import UNSET, UnsetType

from chokaq.config.errors import ConfigError
from chokaq.config.settings import Settings
from chokaq.deck.access import Access
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import Live
from chokaq.deck.users import User
from chokaq.operations.actor import By
from chokaq.operations.circuits import force_circuit
from chokaq.operations.confirm import Action, Confirmation, confirm_jobs, confirm_queue
from chokaq.operations.connect import doorbell
from chokaq.operations.edits import PayloadCheck, ascii_json, check_edits, edit_job
from chokaq.operations.errors import NotAllowed, OperationError
from chokaq.operations.jobs import cancel_jobs, check_id, check_ids
from chokaq.operations.queues import activate_queue, deactivate_queue, pause_queue, resume_queue, set_queue
from chokaq.operations.repair import drop_jobs, purge_jobs, resurrect_jobs
from chokaq.operations.workers import drain_worker
from chokaq.store.circuits import CircuitOrder
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session
from chokaq.store.records import CancelAnswer, QueueView
from chokaq.store.repairs import Edits, RepairAnswer

Answer = TypeVar("Answer")

OVERRIDES = ("max_workers", "fleet_max_workers", "execution_timeout", "zombie_timeout")


class Actions:
    """Actions of one Deck. Every method raises OperationError (its text is for people), NotAllowed (a viewer) or StoreError."""

    def __init__(
        self, settings: Settings, lanes: Lanes, live: Live, access: Access, check: PayloadCheck | None = None
    ) -> None:
        """`check`: what an edited payload has to pass; None: nothing is known of types here."""
        self._settings = settings
        self._lanes = lanes
        self._live = live
        self._access = access
        self._check = check

    # ── confirming ────────────────────────────────────────────────────────────────────────────────────────────────────
    def confirmation(self, action: Action, count: int, *, by_filter: bool = False) -> Confirmation | None:
        """What has to be typed before an action on jobs; None: nothing."""
        return confirm_jobs(action, count, by_filter=by_filter, production=self._settings.production)

    def queue_confirmation(self, action: Action, queue: str) -> Confirmation:
        """What has to be typed before an action on a queue (`deactivate`)."""
        return confirm_queue(action, queue, production=self._settings.production)

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def cancel(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = ""
    ) -> list[CancelAnswer]:
        """Cancel jobs: waiting ones at once, running ones are told."""
        ids = check_ids("cancel", job_ids)
        return await self._do(
            "cancel jobs",
            user,
            reason,
            lambda session, who: cancel_jobs(session, ids, who),
            confirmed=lambda: self._confirm(Action.CANCEL, ids, typed),
        )

    async def resurrect(
        self,
        user: User,
        job_ids: Sequence[str],
        reason: str | None,
        typed: str = "",
        *,
        by_filter: bool = False,
        payload: str | None = None,
        tags: str | None = None,
        priority: int | None = None,
        without_key: bool = False,
    ) -> list[RepairAnswer]:
        """DLQ → Pending. `payload`, `tags`, `priority`: edited in the same step (one job; None: as it is)."""
        ids = check_ids("resurrect", job_ids)
        edits = self._edits(payload, tags, priority)
        return await self._do(
            "resurrect jobs",
            user,
            reason,
            lambda session, who: (
                resurrect_jobs(
                    session,
                    ids,
                    who,
                    edits=edits,
                    without_key=without_key,
                    check=self._check,
                    ring=doorbell(self._lanes.store),
                ).answers
            ),
            confirmed=lambda: self._confirm(Action.RESURRECT, ids, typed, by_filter=by_filter),
        )

    async def drop(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "", *, by_filter: bool = False
    ) -> list[RepairAnswer]:
        """Decide that stopped jobs never run. The reason is required."""
        ids = check_ids("drop", job_ids)
        return await self._do(
            "drop jobs",
            user,
            reason,
            lambda session, who: drop_jobs(session, ids, who).answers,
            confirmed=lambda: self._confirm(Action.DROP, ids, typed, by_filter=by_filter),
        )

    async def purge(
        self, user: User, job_ids: Sequence[str], reason: str | None, typed: str = "", *, by_filter: bool = False
    ) -> list[RepairAnswer]:
        """Delete jobs that have ended."""
        ids = check_ids("purge", job_ids)
        return await self._do(
            "purge jobs",
            user,
            reason,
            lambda session, who: purge_jobs(session, ids, who).answers,
            confirmed=lambda: self._confirm(Action.PURGE, ids, typed, by_filter=by_filter),
        )

    async def edit(
        self,
        user: User,
        job_id: str,
        reason: str | None,
        *,
        payload: str | None = None,
        tags: str | None = None,
        priority: int | None = None,
    ) -> RepairAnswer:
        """Change a job where it stands (None: as it is); the payload is held against the contract of its type where known."""
        edits = self._edits(payload, tags, priority)
        return await self._do(
            "edit a job", user, reason, lambda session, who: edit_job(session, job_id, edits, who, check=self._check)
        )

    async def check_payload(self, job_id: str, payload: str) -> str | None:
        """Why a payload would be refused, in words; None: it fits, or its type is not known here."""
        wanted, check = check_id(job_id), self._check
        try:
            self._edits(payload, None, None)
            job = await self._lanes.run(lambda session: session.get_job(wanted))
            if job is None:
                return f"there is no job {wanted}"
            if check is not None:
                await asyncio.to_thread(check, job, ascii_json(payload))
        except (OperationError, ConfigError) as error:
            return str(error)
        return None

    # ── queues ────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def pause(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Claim nothing new from the queue."""
        return await self._do("pause a queue", user, reason, lambda session, who: pause_queue(session, queue, who))

    async def resume(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Undo a pause."""
        return await self._do("resume a queue", user, reason, lambda session, who: resume_queue(session, queue, who))

    async def deactivate(self, user: User, queue: str, reason: str | None, typed: str = "") -> QueueView:
        """Take the queue out of service."""
        return await self._do(
            "deactivate a queue",
            user,
            reason,
            lambda session, who: deactivate_queue(session, queue, who),
            confirmed=lambda: self.queue_confirmation(Action.DEACTIVATE, queue).check(typed),
        )

    async def activate(self, user: User, queue: str, reason: str | None) -> QueueView:
        """Undo a deactivation."""
        return await self._do(
            "activate a queue", user, reason, lambda session, who: activate_queue(session, queue, who)
        )

    async def set_queue(self, user: User, queue: str, reason: str | None, **overrides: float | None) -> QueueView:
        """Write overrides: `max_workers`, `fleet_max_workers`, `execution_timeout`, `zombie_timeout` (seconds). None clears one."""
        unknown = sorted(overrides.keys() - set(OVERRIDES))
        if unknown:
            raise OperationError(f"there is no override {unknown[0]!r}; it is one of {', '.join(OVERRIDES)}")
        given: dict[str, float | UnsetType | None] = {name: overrides.get(name, UNSET) for name in OVERRIDES}
        return await self._do(
            "set a queue's overrides",
            user,
            reason,
            lambda session, who: set_queue(
                session,
                queue,
                who,
                max_workers=_whole(given["max_workers"]),
                fleet_max_workers=_whole(given["fleet_max_workers"]),
                execution_timeout=given["execution_timeout"],
                zombie_timeout=given["zombie_timeout"],
                heartbeat=self._heartbeat(queue),
            ),
        )

    # ── workers and circuits ──────────────────────────────────────────────────────────────────────────────────────────
    async def drain(self, user: User, worker_id: str, reason: str | None) -> RepairAnswer:
        """Ask a worker to end once its replacement is there."""
        return await self._do(
            "drain a worker", user, reason, lambda session, who: drain_worker(session, worker_id, who)
        )

    async def force_circuit(self, user: User, type_key: str, order: str, reason: str | None) -> CircuitOrder | None:
        """`open`, `closed` or `clear`; the order that stands now."""
        return await self._do(
            "force a circuit", user, reason, lambda session, who: force_circuit(session, type_key, order, who).order
        )

    # ── how it is done ────────────────────────────────────────────────────────────────────────────────────────────────
    async def _do(
        self,
        what: str,
        user: User,
        reason: str | None,
        act: Callable[[Session, By], Answer],
        *,
        confirmed: Callable[[], None] = lambda: None,
    ) -> Answer:
        if self._access.is_over(user):
            self._access.refuse(what, "the session has ended", who=user.name)
            raise NotAllowed("your session has ended: sign in again; nothing was changed")
        if user.may_change:
            confirmed()
        who = user.by(reason)
        try:
            return await self._lanes.run(lambda session: act(session, who))
        except NotAllowed as error:
            self._access.refuse(what, str(error), who=user.name)
            raise
        except ConfigError as error:
            raise OperationError(f"the application cannot be asked whether the payload fits: {error}") from None
        except StoreError as error:
            self._live.failed(error)
            raise
        finally:
            self._live.hint()

    def _heartbeat(self, queue: str) -> float | None:
        """How often a queue's workers renew their leases, where this Deck's configuration names the queue."""
        own = self._settings.queues.get(queue)
        return None if own is None else own.heartbeat

    def _confirm(self, action: Action, ids: Sequence[str], typed: str, *, by_filter: bool = False) -> None:
        due = self.confirmation(action, len(ids), by_filter=by_filter)
        if due is not None:
            due.check(typed)

    def _edits(self, payload: str | None, tags: str | None, priority: int | None) -> Edits:
        return check_edits(
            payload=UNSET if payload is None else payload,
            tags=UNSET if tags is None else (tags or None),
            priority=UNSET if priority is None else priority,
            max_payload_bytes=self._settings.envelope.max_payload_bytes,
        )


def _whole(value: float | UnsetType | None) -> int | UnsetType | None:
    """A whole number as one; what is not whole stays as it is, for the operation to refuse."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value  # type: ignore[return-value]  # refused there, with its bounds
