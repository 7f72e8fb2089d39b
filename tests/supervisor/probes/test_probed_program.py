"""Probes of a real supervisor whose children obey control files: what each path answers as the worker lives, ails and ends."""

import os
import signal
import socket
from pathlib import Path

import pytest

from chokaq.store.sqlite.flock import FileLock
from tests.supervisor.conftest import Start
from tests.supervisor.harness import FakeProgram, alive, wait_until

from .asking import ask, port_of, status, until

pytestmark = pytest.mark.processes
QUEUES = "queues: {alpha: {}, beta: {processes: 2}}\n"
LIMITS = "supervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}\n"


def config(probes: str = "port: 0", queues: str = QUEUES, limits: str = LIMITS) -> str:
    """The YAML of a program."""
    return f"{queues}{limits}probes: {{{probes}}}\n"


def answering(program: FakeProgram) -> int:
    """Pid of the process that answers, the newest."""
    return int(program.wait("web_forked", serves="probes")[-1]["pid"])


def test_a_worker_is_live_at_once_and_ready_when_every_queue_has_booted(start: Start) -> None:
    program = start(config(), alpha={"boot": "hang"})
    until(program, "/livez", 200)
    program.wait("child_ready", 2, queue="beta")
    found = until(program, "/readyz", 503)
    wait_until(
        lambda: ask(port_of(program), "/readyz")[1]["checks"]["workers"]["says"].endswith(": alpha"), "alpha alone"
    )
    found = ask(port_of(program), "/readyz")[1]
    assert found["status"] == "unhealthy"
    assert found["checks"]["phase"]["says"] == "the worker is starting"
    assert found["checks"]["workers"]["parts"]["alpha"]["says"] == "0 of 1 live, 1 booting"
    assert status(port_of(program), "/livez") == 200
    program.script("alpha")
    found = until(program, "/readyz", 200)
    assert found["checks"]["workers"]["parts"]["beta"]["says"] == "2 of 2 live"
    wait_until(lambda: ask(port_of(program), "/readyz")[1]["checks"]["phase"]["says"] == "the worker takes work", "it")
    assert until(program, "/healthz", 200)["status"] in ("healthy", "degraded")
    assert program.end() == 0
    assert status(port_of(program), "/livez") == 0


def test_a_queue_without_a_live_child_is_not_ready_and_lives(start: Start) -> None:
    program = start(config(limits=LIMITS.replace("50ms", "3s").replace("200ms", "3s")))
    until(program, "/readyz", 200)
    victim = program.wait("child_ready", queue="alpha")[0]["pid"]
    one_of_two = program.wait("child_ready", 2, queue="beta")[0]["pid"]
    os.kill(one_of_two, signal.SIGKILL)
    wait_until(lambda: ask(port_of(program), "/healthz")[1]["checks"]["workers"]["status"] == "degraded", "one missing")
    assert status(port_of(program), "/readyz") == 200
    os.kill(victim, signal.SIGKILL)
    found = until(program, "/readyz", 503)
    assert found["checks"]["workers"]["says"] == "without a live child: alpha"
    assert status(port_of(program), "/livez") == 200
    assert status(port_of(program), "/healthz") == 503
    until(program, "/readyz", 200)
    program.end()


def test_a_worker_that_drains_lives_and_takes_no_work_to_its_very_end(start: Start) -> None:
    program = start(config(), alpha={"term": "linger"})
    until(program, "/readyz", 200)
    port, children = port_of(program), program.wait("child_ready", 3)
    program.send(signal.SIGTERM)
    found = until(program, "/readyz", 503)
    assert found["checks"]["phase"]["status"] == "unhealthy"
    assert "drains" in found["checks"]["phase"]["says"]
    assert status(port, "/livez") == 200
    # Also when the one that answers dies in the middle of it.
    os.kill(answering(program), signal.SIGKILL)
    program.wait("web_forked", 2, serves="probes")
    until(program, "/livez", 200)
    assert alive(next(child["pid"] for child in children if child["queue"] == "alpha"))
    program.script("alpha", term="exit")
    assert program.exit_code() == 0
    assert status(port, "/livez") == 0


def test_a_supervisor_that_stands_still_does_not_live(start: Start) -> None:
    program = start(config("port: 0, supervisor_timeout: 3s"))
    until(program, "/readyz", 200)
    program.send(signal.SIGSTOP)
    try:
        found = until(program, "/livez", 503)
        assert "stood still" in found["checks"]["supervisor"]["says"]
        assert found["checks"]["supervisor"]["limits_seconds"] == {"unhealthy": 3.0}
        assert status(port_of(program), "/readyz") == 503
        assert status(port_of(program), "/healthz") == 503
    finally:
        program.send(signal.SIGCONT)
    until(program, "/livez", 200)
    until(program, "/readyz", 200)
    assert program.end() == 0


def test_a_child_whose_loop_stands_still_is_told_of_and_then_does_not_count(start: Start) -> None:
    program = start(config("port: 0, loop_stalled: 1s, heartbeat_timeout: 2s"))
    until(program, "/readyz", 200)
    assert ask(port_of(program), "/healthz")[1]["checks"]["loops"]["status"] == "healthy"
    program.script("alpha", stalled=True)
    wait_until(lambda: ask(port_of(program), "/healthz")[1]["checks"]["loops"]["status"] == "degraded", "it is told of")
    assert ask(port_of(program), "/healthz")[1]["checks"]["loops"]["says"] == "stalled: alpha#0"
    found = until(program, "/readyz", 503)
    assert "not heard of" in found["checks"]["workers"]["parts"]["alpha"]["says"]
    assert status(port_of(program), "/livez") == 200
    program.script("alpha")
    until(program, "/readyz", 200)
    program.end()


def test_children_that_do_not_reach_the_database_are_not_ready_and_live(start: Start) -> None:
    program = start(config())
    until(program, "/readyz", 200)
    program.script("alpha", store=False)
    found = until(program, "/readyz", 503)
    assert found["checks"]["reach"]["says"] == "the database does not answer the children of alpha"
    assert found["checks"]["workers"]["status"] == "healthy"
    assert status(port_of(program), "/livez") == 200
    program.script("alpha")
    until(program, "/readyz", 200)
    program.end()


def test_probes_answer_while_the_database_hangs(start: Start, tmp_path: Path) -> None:
    """Whoever opens a session has to wait for the writers' lock, which a stranger holds."""
    lock = FileLock(tmp_path / "unused.db.lock", 5.0)
    lock.acquire()
    try:
        program = start(config("port: 0, database_timeout: 200ms"))
        until(program, "/livez", 200)
        until(program, "/readyz", 200)
        for _ in range(3):
            found = until(program, "/healthz", 503)
            assert found["checks"]["database"]["status"] == "unhealthy"
            assert found["checks"]["queue_lag"]["says"].startswith("not known")
            assert status(port_of(program), "/livez") == status(port_of(program), "/readyz") == 200
    finally:
        lock.close()
    found = until(program, "/healthz", 200)
    assert found["checks"]["database"]["status"] == "healthy"
    assert found["checks"]["schema"]["says"].startswith("version")
    program.end()


def test_the_one_that_answers_is_replaced_and_harms_nobody(start: Start) -> None:
    program = start(config())
    until(program, "/readyz", 200)
    port, first = port_of(program), answering(program)
    children = program.wait("child_ready", 3)
    # The supervisor holds the port, its children do not.
    inode = listening_inode(port)
    assert inode in sockets_of(program.pid)
    assert inode in sockets_of(first)
    for child in children:
        assert inode not in sockets_of(child["pid"])
    os.kill(first, signal.SIGKILL)
    program.wait("web_died", serves="probes", signal=9)
    # It may answer before the supervisor has logged it.
    until(program, "/readyz", 200)
    program.wait("web_forked", 2, serves="probes")
    assert answering(program) != first
    assert len(program.events("probes_listening")) == 1
    assert port_of(program) == port
    assert not program.events("supervisor_not_ready")
    assert not program.events("child_died")
    program.end()


def test_with_its_supervisor_the_one_that_answers_ends(start: Start) -> None:
    program = start(config())
    until(program, "/readyz", 200)
    pid = answering(program)
    program.end(signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the end of the process")


def test_a_reload_changes_the_probes_and_no_child(start: Start) -> None:
    program = start(config())
    until(program, "/readyz", 200)
    first, port = answering(program), port_of(program)
    program.configure(config("port: 0, heartbeat_timeout: 7s"))
    program.send(signal.SIGHUP)
    program.wait("reloaded")
    program.wait("web_forked", 2, serves="probes")
    program.until(lambda: not alive(first), "the end of the old one")
    assert until(program, "/readyz", 200)["checks"]["workers"]["limits_seconds"] == {"unhealthy": 7.0}
    assert port_of(program) == port
    program.configure(config("port: null"))
    program.send(signal.SIGHUP)
    program.wait("reloaded", 2)
    program.until(lambda: status(port, "/livez") == 0, "the end of the port")
    assert len(program.events("child_forked")) == 3
    assert program.end() == 0


def test_a_taken_port_leaves_a_worker_that_works(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        program = start(config(f"port: {taken.getsockname()[1]}"))
        program.wait("supervisor_ready")
        assert "in use" in program.wait("probes_cannot_listen")[0]["problem"]
    until(program, "/readyz", 200)
    assert program.end() == 0


def listening_inode(port: int) -> str:
    """Of the socket that listens there."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[3] == "0A":
            return fields[9]
    raise AssertionError(f"nobody listens at {port}")


def sockets_of(pid: int) -> set[str]:
    """Inodes of the sockets a process holds."""
    links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
