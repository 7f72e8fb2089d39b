"""Spans of a whole worker: over the network to a collector, or wherever its application sends them; none when tracing is off."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from chokaq import ChokaQ
from chokaq.config.settings import Settings, TracingSettings
from chokaq.lifecycle.states import JobStatus
from chokaq.store.options import DatabaseSettings
from tests.support.processes import ROOT
from tests.support.spans import named, recorded
from tests.support.supervised import Program

pytestmark = pytest.mark.processes
CODE = """
import logging
import sys

from chokaq import ChokaQ, JobContext

app = ChokaQ()


app.job("work.v1", dict, queue="work", max_attempts=2, retry_base_delay=0.01, retry_jitter=0.0)


@app.handler("work.v1")
async def work(job: dict, ctx: JobContext) -> None:
    logging.getLogger("shop").info("modules %s", [name for name in sys.modules if name.startswith("opentelemetry")])
    if job.get("fails") and ctx.attempt == 1:
        raise ConnectionError("away")
"""
OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(
    out=open("spans", "a"), formatter=lambda span: span.to_json(indent=None) + "\\n"), schedule_delay_millis=3_600_000))
trace.set_tracer_provider(provider)
"""
CONFIG = """
app: spans_app:app
database: sqlite:///jobs.db
queues: {{work: {{heartbeat: 1s, poll_max: 50ms}}}}
log_format: json
supervisor: {{shutdown_grace: 10s, respawn_min: 50ms}}
{more}
"""


class Collector:
    """An OTLP receiver on loopback."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.took(self.path, body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def took(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            self.resources.append({item.key: item.value.string_value for item in resource.resource.attributes})
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.close()


Start = Callable[..., tuple[Program, ChokaQ]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A worker on the application above (`code`: more of it, before), and the application to enqueue with."""
    begun: list[tuple[Program, ChokaQ]] = []

    def begin(*, tracing: str = "tracing: {enabled: true}", code: str = "", **environ: str) -> tuple[Program, ChokaQ]:
        (tmp_path / "spans_app.py").write_text(code + CODE)
        (tmp_path / "chokaq.yaml").write_text(CONFIG.format(more=tracing))
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        program = Program(["-m", "chokaq", "worker"], tmp_path, {"PYTHONPATH": path, **environ})
        database = DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}")
        app = ChokaQ(Settings(database=database, tracing=TracingSettings(enabled="true" in tracing)))
        app.job("work.v1", dict, queue="work")
        begun.append((program, app))
        return program, app

    yield begin
    for program, app in begun:
        app.close()
        program.destroy()


def finish(program: Program, app: ChokaQ, job_id: str) -> None:
    """Wait for the job, then for a clean end."""
    program.until(lambda: (job := app.get_sync(job_id)) is not None and job.status is JobStatus.SUCCEEDED, "done")
    assert program.end() == 0


def attributes(span: Any) -> dict[str, Any]:
    return {item.key: item.value.string_value or item.value.int_value for item in span.attributes}


def test_a_workers_spans_reach_a_collector_and_link_to_the_enqueue_of_another_process(
    start: Start, collector: Collector
) -> None:
    mine = recorded()
    # Nothing is sent before the end: what the collector has is what was handed over then.
    program, app = start(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="3600000")
    told = app.enqueue_sync("work.v1", {"fails": True})
    finish(program, app, told.id)
    [enqueue] = named(mine.get_finished_spans(), "enqueue work")
    assert enqueue.context is not None
    first, second = sorted(collector.spans, key=lambda span: int(attributes(span)["chokaq.job.attempt"]))
    for span in (first, second):
        assert span.name == "process work"
        assert not span.parent_span_id
        assert [link.span_id.hex() for link in span.links] == [f"{enqueue.context.span_id:016x}"]
        assert attributes(span)["messaging.message.id"] == told.id
    assert [attributes(span)["chokaq.job.outcome"] for span in (first, second)] == ["retried", "succeeded"]
    assert (first.status.code, first.status.message, second.status.code) == (2, "away", 0)
    [resource] = collector.resources
    [started] = program.events("worker_started")
    assert (resource["service.name"], resource["service.instance.id"]) == ("chokaq", started["worker"])
    assert [event["exporter"] for event in program.events("tracing_started")] == ["otlp"]
    # The line that tells of the retry names the trace in which it stands.
    [retried] = program.events("job_retried", job=told.id)
    assert retried["trace_id"] == first.trace_id.hex()
    lines = [event for event in program.events(logger="shop") if event["job"] == told.id]
    assert [line["trace_id"] for line in lines] == [span.trace_id.hex() for span in (first, second)]
    assert not program.events("spans_lost")


def test_a_provider_of_the_application_gets_them(start: Start, tmp_path: Path) -> None:
    program, app = start(code=OWN)
    told = app.enqueue_sync("work.v1", {})
    finish(program, app, told.id)
    [span] = [json.loads(line) for line in (tmp_path / "spans").read_text().splitlines()]
    assert (span["name"], span["attributes"]["messaging.message.id"]) == ("process work", told.id)
    assert [event["exporter"] for event in program.events("tracing_started")] == ["the application's own"]


def test_a_collector_that_is_away_costs_neither_a_job_nor_a_clean_end(start: Start) -> None:
    # A port that nobody listens on: the one of a collector that has gone.
    gone = Collector()
    gone.close()
    program, app = start(OTEL_EXPORTER_OTLP_ENDPOINT=gone.url)
    finish(program, app, app.enqueue_sync("work.v1", {}).id)


def test_an_exporter_that_is_not_installed_stops_the_program_with_a_clear_message(start: Start) -> None:
    program, _ = start(OTEL_TRACES_EXPORTER="pigeon")
    assert program.exit_code(60) == 78
    assert "the exporter pigeon is not installed" in program.tail()
    assert "OTEL_TRACES_EXPORTER" in program.tail()


def test_off_no_process_imports_any_of_it(start: Start, tmp_path: Path) -> None:
    # Newer versions of this framework, which the services' library looks for, import it by themselves.
    (tmp_path / "fastapi.py").write_text("raise ImportError('not in this test')")
    program, app = start(tracing="")
    finish(program, app, app.enqueue_sync("work.v1", {}).id)
    [line] = program.events(logger="shop")
    assert line["event"] == "modules []"
    assert "trace_id" not in line
