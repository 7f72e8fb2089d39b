"""A TCP proxy on loopback between a client and its server that can be told what to do at the n-th message."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

CHUNK = 1 << 16


class Proxy:
    """Forwards every connection to (host, port). Armed, it counts messages of one direction and acts at the n-th.

    A message is what arrives in one go after the other side spoke: TDS is strictly request, then response.
    """

    def __init__(self, host: str, port: int) -> None:
        """Listens at once, on a free port of loopback."""
        self.target = (host, port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self._lock = threading.Lock()
        self._direction = ""
        self._left = 0
        self._swallow = False
        self._action: Callable[[], None] = lambda: None
        self._last = ""
        self.fired = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, direction: str, countdown: int, action: Callable[[], None], *, swallow: bool = False) -> None:
        """At the `countdown`-th `request` or `response` from now: forward it (unless `swallow`), then run `action`."""
        with self._lock:
            self._direction, self._left, self._action, self._swallow = direction, countdown, action, swallow
            self._last = ""
            self.fired.clear()

    def close(self) -> None:
        """Stop accepting; connections end with their peers."""
        self.listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self.listener.accept()
                server = socket.create_connection(self.target)
                for source, sink, direction in ((client, server, "request"), (server, client, "response")):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pump, args=(source, sink, direction), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                due = self._due(direction)
                if not (due and self._swallow):
                    sink.sendall(data)
                if due:
                    self._action()
                    self.fired.set()
                    if self._swallow:
                        break
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _due(self, direction: str) -> bool:
        with self._lock:
            begins = direction != self._last
            self._last = direction
            if not begins or direction != self._direction or self._left <= 0:
                return False
            self._left -= 1
            return self._left == 0
