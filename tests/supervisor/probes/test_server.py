"""The HTTP server of the probe port, over real sockets."""

import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager

import pytest

from chokaq.supervisor.probes import server as module
from chokaq.supervisor.probes.listening import listen
from chokaq.supervisor.probes.server import ProbeServer, Reply, Route, json_reply
from tests.support.polling import wait_until

LIMIT = 10.0


@contextmanager
def serving(routes: Mapping[str, Route], host: str = "127.0.0.1") -> Iterator[ProbeServer]:
    """A server in a thread."""
    with listen(host, 0) as listening:
        server = ProbeServer(listening, routes)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.finish(LIMIT)
            thread.join()


def port_of(server: ProbeServer) -> int:
    """Where it listens."""
    return int(server.socket.getsockname()[1])


def ask(server: ProbeServer, path: str, method: str = "GET") -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request."""
    with closing(http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=LIMIT)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def yes() -> Reply:
    """Fine."""
    return json_reply(200, {"fine": True})


def connect(server: ProbeServer) -> socket.socket:
    """A connection that says nothing yet."""
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=LIMIT)


def test_paths_answer_what_they_are_given_and_no_other_does() -> None:
    with serving({"/livez": yes, "/metrics": lambda: Reply(200, "text/plain", b"jobs 1\n")}) as server:
        status, headers, body = ask(server, "/livez?verbose")
        assert (status, body) == (200, b'{\n  "fine": true\n}\n')
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        assert headers["Connection"] == "close"
        assert "Python" not in headers["Server"]
        assert ask(server, "/metrics")[2] == b"jobs 1\n"
        status, _, body = ask(server, "/jobs")
        assert status == 404
        assert b"/livez, /metrics" in body


def test_head_is_answered_without_a_body_and_nothing_can_be_posted() -> None:
    with serving({"/livez": yes}) as server:
        status, headers, body = ask(server, "/livez", "HEAD")
        assert (status, headers["Content-Length"], body) == (200, "19", b"")
        assert ask(server, "/livez", "POST")[0] == 501


def test_what_is_no_http_harms_nobody() -> None:
    with serving({"/livez": yes}) as server:
        with connect(server) as one:
            one.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert b'"error": "Bad HTTP' in one.recv(1_000)
        with connect(server) as one:
            one.sendall(b"GET /livez HTTP/1.1\r\n" + b"X: 1\r\n" * 200 + b"\r\n")
            assert b" 431 " in one.recv(1_000)
        assert ask(server, "/livez")[0] == 200


def test_a_path_that_fails_is_told_once_and_the_others_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    working = threading.Event()

    def broken() -> Reply:
        if working.is_set():
            return yes()
        raise ZeroDivisionError("no secret of the database")

    with serving({"/livez": yes, "/healthz": broken}) as server:
        for _ in range(3):
            status, _, body = ask(server, "/healthz")
            assert status == 500
            assert b"secret" not in body
        assert ask(server, "/livez")[0] == 200
        told = capfd.readouterr()
        assert (told.out + told.err).count("probe_failed") == 1
        working.set()
        assert ask(server, "/healthz")[0] == 200
        working.clear()
        assert ask(server, "/healthz")[0] == 500
        told = capfd.readouterr()
        assert (told.out + told.err).count("probe_failed") == 1


def test_slow_answers_of_one_path_leave_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OF_PATH", 3)
    gate, begun = threading.Event(), threading.Semaphore(0)

    def slow() -> Reply:
        begun.release()
        assert gate.wait(LIMIT)
        return yes()

    found: list[int] = []
    with serving({"/livez": yes, "/healthz": slow}) as server:
        threads = [threading.Thread(target=lambda: found.append(ask(server, "/healthz")[0])) for _ in range(3)]
        for thread in threads:
            thread.start()
            assert begun.acquire(timeout=LIMIT)
        assert ask(server, "/healthz")[0] == 503
        assert ask(server, "/livez")[0] == 200
        gate.set()
        for thread in threads:
            thread.join()
        assert ask(server, "/healthz")[0] == 200
    assert found == [200, 200, 200]


def test_connections_that_say_nothing_give_way_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 3)
    with serving({"/livez": yes}) as server, ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(3)]
        wait_until(lambda: len(server._connections) == 3, "three connections")
        assert ask(server, "/livez")[0] == 200
        assert silent[0].recv(1) == b""
        silent[1].sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        assert silent[1].recv(12) == b"HTTP/1.1 200"


def test_those_that_have_asked_do_not_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    gate, begun = threading.Event(), threading.Event()

    def slow() -> Reply:
        begun.set()
        assert gate.wait(LIMIT)
        return yes()

    with serving({"/healthz": slow}) as server, connect(server) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert begun.wait(LIMIT)
        with connect(server) as late:
            assert late.recv(1) == b""
        gate.set()
        assert asking.recv(12) == b"HTTP/1.1 200"


def test_one_that_is_silent_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.05)
    with serving({"/livez": yes}) as server, connect(server) as one:
        one.sendall(b"GET /li")
        assert one.recv(1) == b""


def test_whoever_has_asked_gets_the_answer_before_the_end() -> None:
    gate, begun = threading.Event(), threading.Event()

    def slow() -> Reply:
        begun.set()
        assert gate.wait(LIMIT)
        return yes()

    with serving({"/healthz": slow}) as server, connect(server) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert begun.wait(LIMIT)
        ending = threading.Thread(target=server.finish, args=(LIMIT,))
        ending.start()
        gate.set()
        assert asking.recv(12) == b"HTTP/1.1 200"
        ending.join()


def has_ipv6() -> bool:
    """Whether this host has IPv6 on loopback."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", *(["::", "::1"] if has_ipv6() else [])])
def test_it_listens_on_every_kind_of_address(host: str) -> None:
    with listen(host, 0) as listening:
        port = listening.getsockname()[1]
        for where in {"::": ("127.0.0.1", "::1"), "::1": ("::1",)}.get(host, ("127.0.0.1",)):
            socket.create_connection((where, port), timeout=LIMIT).close()


def test_a_taken_port_is_an_error_at_once() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", first.getsockname()[1])
