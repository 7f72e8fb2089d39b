"""`chokaq health`: the worker's answer for people, for programs, and as an exit code."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chokaq.supervisor.probes.listening import listen
from chokaq.supervisor.probes.server import ProbeServer, Reply, Route, json_reply

from .conftest import Cli

CHECK = {"status": "healthy", "says": "the supervisor looked at its children 1.0 ms ago", "took_ms": 0.1}
WORKERS = {
    "status": "unhealthy",
    "says": "without a live child: emails",
    "parts": {
        "emails": {"status": "unhealthy", "says": "0 of 1 live, 1 booting"},
        "reports": {"status": "healthy", "says": "1 of 1 live"},
    },
}
WELL = {"status": "healthy", "checks": {"supervisor": CHECK}}
ILL = {"status": "unhealthy", "checks": {"supervisor": CHECK, "workers": WORKERS}}


@contextmanager
def worker(routes: Mapping[str, Route], host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A worker that answers so; its port."""
    with listen(host, port) as listening:
        server = ProbeServer(listening, routes)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.finish(10.0)
            thread.join()


def says(status: int, document: Any) -> Route:
    """Always the same."""
    return lambda: json_reply(status, document)


def test_each_question_goes_to_its_path_and_the_answer_is_the_exit_code(cli: Cli) -> None:
    with worker({"/livez": says(200, WELL), "/readyz": says(503, ILL), "/healthz": says(503, ILL)}) as port:
        at = ("--port", str(port))
        assert cli("health", "--live", *at).out.splitlines() == [
            "healthy",
            "  supervisor  healthy    the supervisor looked at its children 1.0 ms ago",
        ]
        assert cli("health", *at, code=1).out.splitlines() == [
            "unhealthy",
            "  supervisor  healthy    the supervisor looked at its children 1.0 ms ago",
            "  workers     unhealthy  without a live child: emails",
            "              unhealthy    emails: 0 of 1 live, 1 booting",
        ]
        ran = cli("health", "--ready", "--json", *at, code=1)
        assert ran.json == ILL
        assert cli("health", "--json", "--live", *at).json == WELL


def test_the_configuration_says_where(cli: Cli, folder: Path) -> None:
    with worker({"/healthz": says(200, WELL)}, "0.0.0.0") as port:
        (folder / "chokaq.yaml").write_text(f"probes: {{host: 0.0.0.0, port: {port}}}")
        assert cli("health").out.startswith("healthy")
        (folder / "elsewhere.yaml").write_text(f"probes: {{port: {port}}}")
        (folder / "chokaq.yaml").unlink()
        assert cli("health", "--config", "elsewhere.yaml").out.startswith("healthy")


@pytest.mark.parametrize(("probes", "hint"), [("{}", "is not set"), ("{port: 0}", "--port")])
def test_a_configuration_that_does_not_say_where_is_one_to_mend(cli: Cli, folder: Path, probes: str, hint: str) -> None:
    (folder / "chokaq.yaml").write_text(f"probes: {probes}")
    ran = cli("health", code=3)
    assert "probes.port" in ran.err
    assert hint in ran.err


def test_nobody_there_is_not_well(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = str(gone.getsockname()[1])
    ran = cli("health", "--live", "--port", port, code=1)
    assert ran.out.startswith(f"unreachable: 127.0.0.1:{port}/livez: ")
    assert cli("health", "--port", port, "--json", code=1).json["status"] == "unreachable"


def test_somebody_who_does_not_answer_in_time_is_not_well(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = cli("health", "--port", str(silent.getsockname()[1]), "--timeout", "0.1", code=1)
    assert "did not answer in time" in ran.out


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
def test_somebody_else_is_not_well(cli: Cli, body: bytes) -> None:
    with worker({"/healthz": lambda: Reply(200, "text/html", body)}) as port:
        assert cli("health", "--port", str(port), code=1).out.startswith("unreachable: ")


def test_a_worker_that_does_not_know_the_path_says_so(cli: Cli) -> None:
    with worker({"/livez": says(200, WELL)}) as port:
        assert "no such path" in cli("health", "--port", str(port), code=1).out


def test_one_question_at_a_time(cli: Cli) -> None:
    assert "one of --live and --ready" in cli("health", "--live", "--ready", "--port", "1", code=2).err
