"""The actions of the API. Each takes what its dialog takes: a reason, and the phrase that confirms it where one is due."""

from typing import Annotated, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from chokaq.deck import wire
from chokaq.deck.access import user_of
from chokaq.deck.desk import Desk
from chokaq.operations.errors import OperationError
from chokaq.store.circuits import CircuitOrder
from chokaq.store.records import CancelAnswer, QueueView
from chokaq.store.repairs import RepairAnswer

Reason = Annotated[str | None, Field(max_length=1_000, description="Kept in the audit log.")]


class Because(BaseModel):
    """Why."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: Reason = None


class Jobs(Because):
    """1 to 1,000 jobs."""

    ids: Annotated[list[Annotated[str, Field(max_length=100)]], Field(min_length=1, max_length=1_000)]
    confirm: Annotated[str, Field(max_length=300, description="The phrase, where one is due: `purge 12`.")] = ""


class Chosen(Jobs):
    """Jobs, perhaps chosen by a filter."""

    by_filter: Annotated[bool, Field(description="They came out of `/preview`: they have to be confirmed.")] = False


class Changes(Because):
    """What to change in a job; null: leave it."""

    payload: Annotated[str | None, Field(max_length=1_000_000, description="JSON text.")] = None
    tags: Annotated[str | None, Field(max_length=1_000)] = None
    priority: Annotated[int | None, Field(ge=0, le=1_000_000)] = None


class Resurrected(Chosen, Changes):
    """Jobs, and what to change on the way (the payload of one job only)."""

    without_key: Annotated[bool, Field(description="Leave an idempotency key behind that a live job holds.")] = False


class Queue(Because):
    """One queue."""

    queue: Annotated[str, Field(max_length=255)]
    confirm: Annotated[str, Field(max_length=300)] = ""


class Overrides(Because):
    """Overrides of a queue: null clears one (the YAML rules again), leaving it out leaves it alone. Timeouts in seconds."""

    queue: Annotated[str, Field(max_length=255)]
    max_workers: Annotated[int | None, Field(ge=1, le=10_000)] = None
    fleet_max_workers: Annotated[int | None, Field(ge=1, le=100_000)] = None
    execution_timeout: Annotated[float | None, Field(ge=1, le=86_400)] = None
    zombie_timeout: Annotated[float | None, Field(ge=1, le=86_400)] = None


class Order(Because):
    """An order to the circuits of a type."""

    type_key: Annotated[str, Field(max_length=255)]
    order: Literal["open", "closed", "clear"]


def add_actions(api: FastAPI, desk: Desk) -> None:
    """Declare every action."""
    _add_jobs(api, desk)
    _add_queues(api, desk)
    actions = desk.actions

    @api.post("/workers/{worker_id}/drain", responses=wire.returns(RepairAnswer), response_class=Response)
    async def drain(request: Request, worker_id: str, body: Because) -> Response:
        """Ask a worker to end once its replacement is there."""
        return wire.answer(await actions.drain(user_of(request), worker_id, body.reason))

    @api.post("/circuits/force", responses=wire.returns(CircuitOrder, or_null=True), response_class=Response)
    async def force(request: Request, body: Order) -> Response:
        """Order the circuits of a type everywhere; `null` when none stands any more."""
        return wire.answer(await actions.force_circuit(user_of(request), body.type_key, body.order, body.reason))


def _add_jobs(api: FastAPI, desk: Desk) -> None:
    actions = desk.actions

    @api.post("/jobs/cancel", responses=wire.returns(CancelAnswer, many=True), response_class=Response)
    async def cancel(request: Request, body: Jobs) -> Response:
        """Cancel jobs: waiting ones at once, running ones are told."""
        return wire.answer(await actions.cancel(user_of(request), body.ids, body.reason, body.confirm))

    @api.post("/jobs/resurrect", responses=wire.returns(RepairAnswer, many=True), response_class=Response)
    async def resurrect(request: Request, body: Resurrected) -> Response:
        """Return stopped jobs to Pending, edited on the way."""
        return wire.answer(
            await actions.resurrect(
                user_of(request),
                body.ids,
                body.reason,
                body.confirm,
                by_filter=body.by_filter,
                payload=body.payload,
                tags=body.tags,
                priority=body.priority,
                without_key=body.without_key,
            )
        )

    @api.post("/jobs/drop", responses=wire.returns(RepairAnswer, many=True), response_class=Response)
    async def drop(request: Request, body: Chosen) -> Response:
        """Decide that stopped jobs never run. The reason is required."""
        return wire.answer(
            await actions.drop(user_of(request), body.ids, body.reason, body.confirm, by_filter=body.by_filter)
        )

    @api.post("/jobs/purge", responses=wire.returns(RepairAnswer, many=True), response_class=Response)
    async def purge(request: Request, body: Chosen) -> Response:
        """Delete jobs that have ended."""
        return wire.answer(
            await actions.purge(user_of(request), body.ids, body.reason, body.confirm, by_filter=body.by_filter)
        )

    @api.post("/jobs/{job_id}/edit", responses=wire.returns(RepairAnswer), response_class=Response)
    async def edit(request: Request, job_id: str, body: Changes) -> Response:
        """Change a job where it stands: Pending, or in the DLQ and not Dropped."""
        return wire.answer(
            await actions.edit(
                user_of(request), job_id, body.reason, payload=body.payload, tags=body.tags, priority=body.priority
            )
        )


def _add_queues(api: FastAPI, desk: Desk) -> None:
    actions = desk.actions

    @api.post("/queues/{action}", responses=wire.returns(QueueView), response_class=Response)
    async def change(
        request: Request, action: Literal["pause", "resume", "deactivate", "activate"], body: Queue
    ) -> Response:
        """Pause or resume a queue, take it out of service or back into it."""
        user = user_of(request)
        if action == "deactivate":
            return wire.answer(await actions.deactivate(user, body.queue, body.reason, body.confirm))
        act = {"pause": actions.pause, "resume": actions.resume, "activate": actions.activate}[action]
        return wire.answer(await act(user, body.queue, body.reason))

    @api.put("/queues/overrides", responses=wire.returns(QueueView), response_class=Response)
    async def overrides(request: Request, body: Overrides) -> Response:
        """Write overrides."""
        given = {name: getattr(body, name) for name in body.model_fields_set - {"queue", "reason"}}
        if not given:
            raise OperationError("nothing to set: name at least one override")
        return wire.answer(await actions.set_queue(user_of(request), body.queue, body.reason, **given))
