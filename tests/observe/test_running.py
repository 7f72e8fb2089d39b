"""Fields of the running job on every line inside a handler."""

import logging
from contextvars import copy_context

import structlog

from chokaq.observe import job_fields
from chokaq.observe.running import enter
from tests.observe.conftest import Lines


class Job:
    id, type_key, queue, attempt = "J1", "a.v1", "q", 2
    trace_id: str | None = None


def test_a_line_names_the_job_that_runs_and_its_own_fields_win(lines: Lines) -> None:
    lines.configure("info")

    def handler() -> None:
        enter(Job())
        structlog.get_logger().info("one", type="mine")
        logging.getLogger("shop").warning("two")

    copy_context().run(handler)
    structlog.get_logger().info("outside")
    one, two, outside = lines.read()
    assert {name: one.get(name) for name in ("job", "type", "queue", "attempt")} == {
        "job": "J1", "type": "mine", "queue": "q", "attempt": 2,
    }  # fmt: skip
    assert (two["job"], two["type"], two["logger"], "trace_id" in two) == ("J1", "a.v1", "shop", False)
    assert "job" not in outside


def test_the_fields_alone_are_there_for_other_loggers() -> None:
    job = Job()
    job.trace_id = "a" * 32

    def fields() -> dict[str, object]:
        enter(job)
        return dict(job_fields())

    assert copy_context().run(fields) == {
        "job": "J1", "type": "a.v1", "queue": "q", "attempt": 2, "trace_id": "a" * 32,
    }  # fmt: skip
    assert dict(job_fields()) == {}
