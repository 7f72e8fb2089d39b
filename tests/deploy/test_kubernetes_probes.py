"""The pods' commands with their configuration and environment, as programs here: what the kubelet will ask is what they answer."""

import os
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT
from tests.support.supervised import Program

from .manifests import CONFIG, Workload, config_text, secret, workload

pytestmark = pytest.mark.processes
Start = Callable[[Workload], Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start what a pod starts; an SQLite file in the place of the server, free ports in the place of the pod's own."""
    started: list[Program] = []

    def begin(of: Workload) -> Program:
        credentials = tmp_path / "credentials"
        credentials.mkdir()
        for name, value in secret(of).items():
            (credentials / name).write_text(value)
        text = config_text(of)
        for port in of.ports.values():
            assert f"port: {port}" in text
            text = text.replace(f"port: {port}", "port: 0")
        (tmp_path / CONFIG).write_text(text)
        environ = {
            **of.environment,
            "CHOKAQ_CONFIG": str(tmp_path / CONFIG),
            "CREDENTIALS_DIRECTORY": str(credentials),
            "XDG_RUNTIME_DIR": str(tmp_path),
            "CHOKAQ_DATABASE_URL": f"sqlite:///{tmp_path / 'chokaq.db'}",
            "CHOKAQ_PRODUCTION": "false",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")]),
        }
        started.append(Program(["-m", "chokaq", *of.container["args"]], tmp_path, environ))
        return started[-1]

    yield begin
    for program in started:
        program.destroy()


def answer(probe: dict[str, Any], port: int) -> int:
    """The status of what a probe asks, as the kubelet asks it: by the pod's address."""
    asking = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        asking.request(
            "GET", probe["httpGet"]["path"], headers={"Host": "10.1.2.3:80", "User-Agent": "kube-probe/1.33"}
        )
        return asking.getresponse().status
    finally:
        asking.close()


def test_a_worker_answers_its_probes(start: Start) -> None:
    pod = workload("chokaq-worker")
    container = pod.container
    program = start(pod)
    [listening] = program.wait("probes_listening")
    program.wait("supervisor_ready")
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        program.until(lambda name=name: answer(container[name], listening["port"]) == 200, name)  # type: ignore[misc]
    assert program.end() == 0


def test_the_deck_answers_its_probes_though_nobody_signs_in(start: Start) -> None:
    pod = workload("chokaq-deck")
    program = start(pod)
    [ready] = program.wait("deck_ready", timeout=60.0)
    port = int(ready["url"].rstrip("/").rpartition(":")[2])
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert answer(pod.container[name], port) == 200
    program.end()


def test_the_schema_job_succeeds_and_says_so(start: Start) -> None:
    program = start(workload("chokaq-schema"))
    assert program.exit_code() == 0
    assert "is at version" in program.tail()
