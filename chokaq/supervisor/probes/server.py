"""The HTTP server of the probe port: a few fixed paths, a thread per request, and nothing that can pile up.

Whoever connects and says nothing gives way to those who ask, and slow answers of one path leave room for the others: what
decides over the life of a whole worker must be heard in any case.
"""

import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson
import structlog

log = structlog.get_logger("chokaq")

MAX_CONNECTIONS = 64
"""Open at once. Beyond that the oldest connection that has not asked anything yet is closed; without one, the new one is."""
MAX_OF_PATH = 16
"""Requests of one path that are answered at once; further ones are told to come back."""
SILENCE = 5.0
"""Seconds after which a connection that neither sends nor takes anything is closed."""


class Reply(NamedTuple):
    """What a path answers."""

    status: int
    content_type: str
    body: bytes


Route = Callable[[], Reply]
"""Answers one GET, in a thread of that request. One that raises is answered with 500, and does no further harm."""


def json_reply(status: int, value: Any) -> Reply:
    """A JSON document, indented: people read it with curl, too."""
    return Reply(status, "application/json; charset=utf-8", orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


class ProbeServer(ThreadingHTTPServer):
    """Answers GET and HEAD of the given paths over a socket that listens already."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, listening: socket.socket, routes: Mapping[str, Route], beat: Callable[[], None] = lambda: None
    ) -> None:
        """`listening` stays the caller's. `routes`: path → what answers it. `beat`: called twice a second while it serves."""
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.routes = dict(routes)
        self._beat = beat
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._connections: dict[socket.socket, bool] = {}
        """The open ones, the oldest first; True: it has asked."""
        self._of_path: dict[str, int] = {}
        self._failing: set[str] = set()

    def answer(self, path: str) -> Reply:
        """What a path answers now."""
        route = self.routes.get(path)
        if route is None:
            return json_reply(HTTPStatus.NOT_FOUND, {"error": f"no such path; there are {', '.join(self.routes)}"})
        if not self._begin(path):
            return json_reply(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "too many ask this at once: try again"})
        try:
            reply = route()
        except Exception:
            # Told once for a failure that goes on: a probe comes back every few seconds.
            if path not in self._failing:
                self._failing.add(path)
                log.exception("probe_failed", path=path)
            return json_reply(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "this answer failed; the log says why"})
        finally:
            with self._lock:
                self._of_path[path] -= 1
        self._failing.discard(path)
        return reply

    def asks(self, connection: socket.socket) -> None:
        """The connection has said what it wants: it gives way to nobody any more."""
        with self._lock:
            self._connections[connection] = True

    def finish(self, patience: float) -> None:
        """Accept no more (end `serve_forever`), and let those that have asked take their answer, for so many seconds at most."""
        self.shutdown()
        with self._ended:
            self._ended.wait_for(lambda: not any(self._connections.values()), patience)

    def _begin(self, path: str) -> bool:
        with self._lock:
            busy = self._of_path.get(path, 0)
            if busy < MAX_OF_PATH:
                self._of_path[path] = busy + 1
            return busy < MAX_OF_PATH

    # ── called by the base class ──────────────────────────────────────────────────────────────────────────────────────
    def service_actions(self) -> None:
        """Between two connections, and twice a second without any."""
        self._beat()

    def process_request(self, request: Any, client_address: Any) -> None:
        """A new connection: it gets a thread, if there is room or somebody gives way."""
        with self._lock:
            full = len(self._connections) >= MAX_CONNECTIONS
            oldest = next((one for one, asked in self._connections.items() if not asked), None) if full else None
            if oldest is not None:
                del self._connections[oldest]
                # Its thread reads the end of it; the descriptor is that thread's to close.
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            if not full or oldest is not None:
                self._connections[request] = False
        if full and oldest is None:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A connection has ended."""
        super().shutdown_request(request)
        with self._lock:
            self._connections.pop(request, None)
            self._ended.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are no news; anything else is a defect here."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("probe_connection_failed", error=repr(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "chokaq"
    sys_version = ""
    timeout = SILENCE
    server: ProbeServer

    def do_HEAD(self) -> None:
        """The headers of a GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer with a body."""
        self.server.asks(self.connection)
        self._send(self.server.answer(self.path.partition("?")[0]))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no GET, or no HTTP."""
        del explain
        self._send(json_reply(code, {"error": message or HTTPStatus(code).phrase}))

    def log_message(self, *_args: Any) -> None:
        """No line per request: probes come every few seconds, for years."""

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        # One answer per connection: nobody holds one open between two probes.
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
