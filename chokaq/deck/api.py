"""A small JSON API: the reads and actions of the pages, for programs. `GET /api/openapi.json` describes it.

Errors are problem JSON. The gate has let the caller in; the operations check the role again.
"""

from typing import Annotated, Any, Literal

import structlog
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from chokaq.deck import shown, wire
from chokaq.deck.access import Refusal, user_of
from chokaq.deck.api_actions import add_actions
from chokaq.deck.desk import Desk
from chokaq.deck.searching import search_of
from chokaq.deck.users import Role
from chokaq.operations.circuit_history import CircuitHistory
from chokaq.operations.circuits import CircuitStatus
from chokaq.operations.errors import NotAllowed, OperationError, UnknownJob
from chokaq.operations.repair import Preview
from chokaq.store.errors import StoreError, StoreRefused

log = structlog.get_logger("chokaq")

AWAY_RETRY = "5"
"""Seconds after which a caller may try again while the database is away."""

Text = Annotated[str | None, Query(max_length=1_000)]
Cursor = Annotated[str | None, Query(max_length=500, description="`after` of the page before, of the same filter.")]


def build_api(desk: Desk) -> FastAPI:
    """The application to mount at `/api`."""
    api = FastAPI(title=f"The Deck of {desk.settings.deck.title}", version="1", docs_url=None, redoc_url=None)
    _add_reads(api, desk)
    add_actions(api, desk)
    _add_errors(api)
    api.openapi = lambda: _described(api, desk)  # type: ignore[method-assign]
    return api


def _add_reads(api: FastAPI, desk: Desk) -> None:
    reads = desk.reads

    @api.get("/overview", responses=wire.returns(shown.Overview), response_class=Response)
    async def overview() -> Response:
        """Totals, rates, lag, health, the largest families of errors."""
        return wire.answer(await reads.overview())

    @api.get("/charts", responses=wire.returns(shown.Charts), response_class=Response)
    async def charts(
        span: Literal["hour", "day"] = "hour", queue: Annotated[str | None, Query(max_length=255)] = None
    ) -> Response:
        """Series from the outcome counters."""
        return wire.answer(await reads.charts(span, queue))

    @api.get("/queues", responses=wire.returns(shown.QueueRow, many=True), response_class=Response)
    async def queues() -> Response:
        """Every queue, by name."""
        return wire.answer(await reads.queues())

    @api.get("/queues/priorities", responses=wire.returns(shown.PriorityRow, many=True), response_class=Response)
    async def priorities(queue: Annotated[str, Query(max_length=255)]) -> Response:
        """How many jobs of each priority of a queue are due, and how long the oldest has waited; the highest first."""
        return wire.answer(await reads.priorities(queue))

    @api.get("/jobs", responses=wire.returns(shown.JobsPage), response_class=Response)
    async def jobs(
        request: Request,
        *,
        pillar: Text = None,
        queue: Text = None,
        status: Text = None,
        type: Text = None,  # noqa: A002 - the parameter's name in the URL
        reason: Text = None,
        error: Text = None,
        tag: Text = None,
        q: Text = None,
        from_: Annotated[str | None, Query(alias="from", max_length=1_000)] = None,
        until: Text = None,
        sort: Text = None,
        dir: Text = None,  # noqa: A002
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        after: Cursor = None,
    ) -> Response:
        """One page of a list; the parameters are those of the page `/jobs`. No payloads."""
        del pillar, queue, status, type, reason, error, tag, q, from_, until, sort, dir
        return wire.answer(await reads.jobs(search_of(_plain_texts(request)), limit, after))

    @api.get("/jobs/{job_id}", responses=wire.returns(shown.JobPage), response_class=Response)
    async def job(job_id: str) -> Response:
        """Everything about one job, payload included."""
        return wire.answer(await reads.job(job_id))

    @api.get("/preview", responses=wire.returns(Preview), response_class=Response)
    async def preview(
        request: Request,
        action: Literal["resurrect", "drop", "purge"],
        maximum: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> Response:
        """What an action by filter on the DLQ would touch now; further parameters are those of `/jobs`."""
        return wire.answer(await reads.preview(search_of({"pillar": "dlq"} | _plain_texts(request)), action, maximum))

    @api.get("/workers", responses=wire.returns(shown.WorkerRow, many=True), response_class=Response)
    async def workers(ended: bool = False) -> Response:
        """The registry, newest first, each with the jobs it runs."""
        return wire.answer(await reads.workers(ended=ended))

    @api.get("/circuits", responses=wire.returns(CircuitStatus, many=True), response_class=Response)
    async def circuits() -> Response:
        """Every circuit that met a failure or an order, the open ones first."""
        return wire.answer(await reads.circuits())

    @api.get("/circuits/events", responses=wire.returns(CircuitHistory), response_class=Response)
    async def circuit_events(
        type: Annotated[str, Query(max_length=255)],  # noqa: A002
        tries: bool = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        after: Cursor = None,
    ) -> Response:
        """What the circuits of a job type did and what was ordered about it within the last 7 days, one page, newest first."""
        return wire.answer(await reads.circuit_events(type, limit, after, tries=tries))

    @api.get("/circuits/timeline", responses=wire.returns(shown.CircuitTimeline), response_class=Response)
    async def circuit_timeline(type: Annotated[str, Query(max_length=255)]) -> Response:  # noqa: A002
        """How many workers' circuits of a job type were not closed over the last 24 h."""
        return wire.answer(await reads.circuit_timeline(type))

    @api.get("/audit", responses=wire.returns(shown.AuditPage), response_class=Response)
    async def audit(
        target: Annotated[str | None, Query(max_length=255)] = None,
        actor: Annotated[str | None, Query(max_length=100)] = None,
        action: Annotated[str | None, Query(max_length=50)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        after: Cursor = None,
    ) -> Response:
        """One page of the audit log, newest first."""
        return wire.answer(await reads.audit(target=target, actor=actor, action=action, limit=limit, after=after))

    @api.get("/settings", responses=wire.returns(shown.Setting, many=True), response_class=Response)
    async def settings() -> Response:
        """Every option as it holds, and where it came from; passwords hidden."""
        return wire.answer(await reads.settings())

    @api.get("/refusals", responses=wire.returns(Refusal, many=True), response_class=Response)
    async def refusals(request: Request) -> Response:
        """Who was refused what by this process, newest first. For operators."""
        user = user_of(request)
        if user.role is not Role.OPERATOR:
            raise NotAllowed("refusals are shown to operators only")
        return wire.answer(await reads.refusals())


def _plain_texts(request: Request) -> dict[str, str]:
    """The parameters of a URL. Raises OperationError for a text that no store can hold."""
    for name, text in request.query_params.items():
        if "\0" in text:
            raise OperationError(f"{name}: holds a NUL character")
    return dict(request.query_params)


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(OperationError)
    async def refused(request: Request, error: OperationError) -> Response:
        if isinstance(error, NotAllowed):
            return wire.problem(403, "Not allowed", str(error))
        if isinstance(error, UnknownJob):
            return wire.problem(404, "There is no such job", str(error))
        return wire.problem(400, "Refused", str(error))

    @api.exception_handler(StoreError)
    async def away(request: Request, error: StoreError) -> Response:
        if isinstance(error, StoreRefused):
            return wire.problem(400, "Refused by the database", str(error))
        return wire.problem(503, "The database is away", str(error), headers={"retry-after": AWAY_RETRY})

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        errors = [
            {"where": ".".join(str(part) for part in one["loc"]), "problem": str(one["msg"])} for one in error.errors()
        ]
        return wire.problem(422, "Not what the description asks for", "see `errors`", errors)

    @api.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        return wire.problem(error.status_code, str(error.detail), str(error.detail), headers=error.headers)

    @api.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        log.error("deck_api_failed", path=request.url.path, exc_info=error)
        return wire.problem(500, "The Deck failed", "this is a defect; the log of The Deck holds it")


def _described(api: FastAPI, desk: Desk) -> dict[str, Any]:
    if api.openapi_schema is None:
        found = get_openapi(title=api.title, version=api.version, description=__doc__, routes=api.routes)
        found["servers"] = [{"url": f"{desk.base}/api"}]
        components = found.setdefault("components", {})
        components.setdefault("schemas", {}).update(wire.schemas())
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}, {}]
        api.openapi_schema = found
    return api.openapi_schema
