"""The API keeps to its description: schemathesis finds no 5xx and no answer that the description does not name."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chokaq.config.load import Loaded
from chokaq.config.settings import DeckSettings, Settings
from chokaq.deck.desk import Desk
from chokaq.deck.site import build_site
from chokaq.lifecycle.circuit import Forced
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import AttemptError, Failure
from tests.deck.conftest import TOKEN
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, TYPE, new_jobs

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
TRIES = 15
"""Requests per endpoint."""


class Served:
    """A Deck with jobs in every pillar, served on a free port by a thread."""

    def __init__(self, store: Store, options: DatabaseSettings) -> None:
        deck = DeckSettings(token=TOKEN, token_role="operator")
        site = build_site(Desk(Loaded(Settings(database=options, deck=deck), {}), store), pages=False)
        self.server = uvicorn.Server(uvicorn.Config(site, port=0, log_config=None, lifespan="on"))
        self.thread = threading.Thread(target=self.server.run)

    def start(self) -> str:
        """Its URL."""
        self.thread.start()
        while not (self.server.started and self.server.servers):
            assert self.thread.is_alive()
            self.thread.join(0.01)
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """End it."""
        self.server.should_exit = True
        self.thread.join()


def fill(session: Session) -> list[str]:
    """Jobs in every pillar and state; some ids."""
    jobs = [*new_jobs(12), *new_jobs(3, queue="other", delay_ms=3_600_000)]
    session.enqueue_jobs(jobs)
    holder = Holder(session)
    held = holder.take(9)
    holder.succeed(held[:3])
    session.archive_failed(
        holder.worker,
        [
            Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, AttemptError("KeyError", "no 'x'"))
            for one in held[3:7]
        ],
    )
    session.cancel_jobs([jobs[-1].id], "anna")
    session.force_circuit(TYPE, Forced.OPEN, "anna")
    return [held[0].id, held[3].id, held[8].id, jobs[10].id, jobs[-1].id]


@pytest.fixture
def served(store: Store, store_options: DatabaseSettings, session: Session) -> Iterator[tuple[str, list[str]]]:
    """URL and ids."""
    ids = fill(session)
    deck = Served(store, store_options)
    try:
        yield deck.start(), ids
    finally:
        deck.stop()


@pytest.mark.timeout(600)
def test_every_endpoint_keeps_to_its_description(served: tuple[str, list[str]]) -> None:
    url, ids = served
    headers = {"Authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json", headers=headers)
    operations = [result.ok() for result in schema.get_all_operations()]
    seen: dict[str, set[int]] = {}

    for operation in operations:
        for chosen in ([], ids):
            _probe(operation, url, chosen, seen)

    assert len(seen) == len(operations) == 23
    assert all(status < 500 for statuses in seen.values() for status in statuses), seen
    without_success = {endpoint for endpoint, statuses in seen.items() if 200 not in statuses}
    assert not without_success, without_success


def _probe(operation: Any, url: str, ids: list[str], seen: dict[str, set[int]]) -> None:
    """Ask one endpoint many times; with `ids`: for jobs that exist."""
    headers = {"Authorization": f"Bearer {TOKEN}"}

    @settings(
        max_examples=5 if ids else TRIES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def probe(case: Case) -> None:
        if ids:
            _use_real_ids(case, ids)
        answer = case.call_and_validate(base_url=f"{url}/api", headers=headers, checks=CHECKS)
        seen.setdefault(f"{operation.method} {operation.path}", set()).add(answer.status_code)

    probe()


def _use_real_ids(case: Case, ids: list[str]) -> None:
    """Ids of jobs that exist, the phrase that confirms, and texts that the store knows: what no generator guesses."""
    if "job_id" in (case.path_parameters or {}):
        case.path_parameters["job_id"] = ids[1]
    if "worker_id" in (case.path_parameters or {}):
        case.path_parameters["worker_id"] = ids[0]
    if case.operation.path == "/jobs" and case.operation.method == "get":
        case.query = {"pillar": "dlq", "limit": 2}
    if case.operation.path == "/audit":
        case.query = {"limit": 2, "actor": "anna"}
    if case.operation.path.startswith("/circuits/") and case.operation.method == "get":
        case.query = {"type": TYPE}
    if case.operation.path == "/queues/priorities":
        case.query = {"queue": QUEUE}
    body = case.body
    if isinstance(body, dict):
        action = case.operation.path.rsplit("/", 1)[-1]
        if "ids" in body:
            case.body = {"ids": ids, "reason": "tested", "confirm": f"{action} {len(ids)}"}
        elif "/queues/" in case.operation.path:
            verb = (case.path_parameters or {}).get("action", "")
            case.body = {"queue": "mail", "confirm": f"{verb} mail"}
            if case.operation.method == "put":
                case.body = {"queue": "mail", "max_workers": 3}
        elif case.operation.path.endswith("/edit"):
            case.body = {"priority": 3}
        elif case.operation.path.endswith("/force"):
            case.body = {"type_key": "email.send.v1", "order": "open"}
        else:
            case.body = {}


def test_the_description_names_every_read_and_action(served: tuple[str, list[str]]) -> None:
    url, _ = served
    schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})

    paths = set(schema.raw_schema["paths"])

    assert {
        "/overview",
        "/charts",
        "/queues",
        "/jobs",
        "/jobs/{job_id}",
        "/preview",
        "/workers",
        "/queues/priorities",
        "/circuits",
        "/circuits/events",
        "/circuits/timeline",
        "/audit",
    } <= paths
    assert {"/settings", "/refusals", "/jobs/cancel", "/jobs/resurrect", "/jobs/drop", "/jobs/purge"} <= paths
    assert {"/jobs/{job_id}/edit", "/queues/{action}", "/queues/overrides", "/workers/{worker_id}/drain"} <= paths
    assert schema.raw_schema["components"]["schemas"]["JobStatus"]["enum"][0] == "Pending"
