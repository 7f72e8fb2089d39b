"""The span of an enqueue, and its context in the headers of the jobs."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from chokaq import ChokaQ, Enqueue
from chokaq.config.settings import Settings, TracingSettings
from chokaq.jobs.envelope import MAX_HEADERS_BYTES
from chokaq.observe import tracer
from chokaq.observe.tracer import TracingNotInstalled
from chokaq.store.errors import StoreUnavailable
from chokaq.store.options import DatabaseSettings
from tests.support.processes import ROOT
from tests.support.spans import named, recorded, traceparent

THEIRS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Mail(msgspec.Struct):
    to: str = "a"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return recorded()


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChokaQ]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    database = DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}", retries=0)
    app = ChokaQ(Settings(database=database, tracing=TracingSettings(enabled=True)))
    app.job("mail.send.v1", queue="mail")(Mail)
    app.job("print.v1", dict, queue="paper")
    yield app
    app.close()


def only(spans: InMemorySpanExporter, name: str = "enqueue mail") -> ReadableSpan:
    [span] = named(spans.get_finished_spans(), name)
    return span


def header(app: ChokaQ, job_id: str) -> str | None:
    view = app.get_sync(job_id)
    assert view is not None
    headers: dict[str, str] = msgspec.json.decode(view.headers or "{}")
    return headers.get("traceparent")


@pytest.mark.parametrize("how", ["async", "sync", "transaction"])
async def test_an_enqueue_is_a_span_whose_context_travels_with_the_job(
    app: ChokaQ, spans: InMemorySpanExporter, how: str, tmp_path: Path
) -> None:
    with trace.get_tracer("shop").start_as_current_span("request") as request:
        if how == "async":
            told = await app.enqueue(Mail())
        elif how == "sync":
            told = app.enqueue_sync(Mail())
        else:
            app.store.apply_schema()
            with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
                told = app.enqueue_in(connection.cursor(), Mail())
                connection.commit()
    span = only(spans)
    assert header(app, told.id) == traceparent(span)
    assert span.kind is SpanKind.PRODUCER
    assert span.parent is not None
    assert span.parent.span_id == request.get_span_context().span_id
    assert dict(span.attributes or {}) == {
        "messaging.system": "chokaq",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": told.id,
        "chokaq.job.type": "mail.send.v1",
        "chokaq.job.created": True,
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_many_jobs_share_the_span_of_their_call(app: ChokaQ, spans: InMemorySpanExporter) -> None:
    told = await app.enqueue_many([Mail(), Enqueue(Mail(), idempotency_key="k"), Enqueue(Mail(), idempotency_key="k")])
    span = only(spans)
    assert {header(app, answer.id) for answer in told} == {traceparent(span)}
    assert span.attributes is not None
    assert (span.attributes["messaging.batch.message_count"], span.attributes["chokaq.jobs.duplicates"]) == (3, 1)
    assert "messaging.message.id" not in span.attributes
    await app.enqueue_many([Mail(), Enqueue("print.v1", {})])
    assert "messaging.destination.name" not in (only(spans, "enqueue").attributes or {})


async def test_a_duplicate_names_the_job_that_stands_for_it(app: ChokaQ, spans: InMemorySpanExporter) -> None:
    first = await app.enqueue(Mail(), idempotency_key="k")
    again = await app.enqueue(Mail(), idempotency_key="k")
    assert not again.created
    one, two = named(spans.get_finished_spans(), "enqueue mail")
    assert [(span.attributes or {})["chokaq.job.created"] for span in (one, two)] == [True, False]
    assert (two.attributes or {})["messaging.message.id"] == first.id
    assert header(app, first.id) == traceparent(one)


async def test_a_trace_context_of_the_caller_stays_and_the_span_links_to_it(
    app: ChokaQ, spans: InMemorySpanExporter
) -> None:
    told = await app.enqueue(Mail(), headers={"traceparent": THEIRS, "tenant": "7"})
    view = await app.get(told.id)
    assert view is not None
    assert msgspec.json.decode(view.headers or "") == {"traceparent": THEIRS, "tenant": "7"}
    [link] = only(spans).links
    assert f"{link.context.trace_id:032x}" in THEIRS


async def test_other_headers_stay_beside_it(app: ChokaQ, spans: InMemorySpanExporter) -> None:
    told = await app.enqueue(Mail(), headers={"tenant": "7"})
    view = await app.get(told.id)
    assert view is not None
    assert msgspec.json.decode(view.headers or "") == {"tenant": "7", "traceparent": traceparent(only(spans))}


async def test_headers_that_are_full_are_no_reason_to_refuse_a_job(app: ChokaQ, spans: InMemorySpanExporter) -> None:
    full = "x" * (MAX_HEADERS_BYTES - len('{"a":""}'))
    told = await app.enqueue(Mail(), headers={"a": full})
    assert told.created
    assert header(app, told.id) is None
    assert only(spans).status.status_code is StatusCode.UNSET


async def test_a_failed_enqueue_is_an_error_without_secrets(
    app: ChokaQ, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any) -> Any:
        raise StoreUnavailable("mssql://sa:hunter2@h/d does not answer")

    monkeypatch.setattr(app._client, "enqueue", refuse)
    with pytest.raises(StoreUnavailable):
        await app.enqueue(Mail())
    span = only(spans)
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "StoreUnavailable"
    [event] = span.events
    assert event.attributes is not None
    assert event.attributes["exception.message"] == "mssql://sa:***@h/d does not answer"


def in_a_program(code: str, folder: Path) -> str:
    """What a program of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAM = """
import sys
from chokaq import ChokaQ
app = ChokaQ("chokaq.yaml")
app.job("a.v1", dict, queue="q")
told = app.enqueue_sync("a.v1", {})
print("opentelemetry" in sys.modules, app.get_sync(told.id).headers)
"""


def test_off_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    (tmp_path / "chokaq.yaml").write_text("database: sqlite:///jobs.db\n")
    assert in_a_program(PROGRAM, tmp_path).split() == ["False", "None"]


def test_on_without_a_provider_nothing_is_recorded_and_nothing_travels(tmp_path: Path) -> None:
    (tmp_path / "chokaq.yaml").write_text("database: sqlite:///jobs.db\ntracing: {enabled: true}\n")
    assert in_a_program(PROGRAM, tmp_path).split() == ["True", "None"]


def test_without_the_extra_the_error_says_what_to_install(app: ChokaQ, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "chokaq.observe.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # type: ignore[arg-type]
    with pytest.raises(TracingNotInstalled, match=r"pip install 'chokaq\[otel\]'"):
        app.enqueue_sync(Mail())
    assert tracer.tracing(False, "link", str) is None
