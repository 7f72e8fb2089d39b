"""A TCP proxy on loopback between a client and its server: it can act at the n-th message, cut, stall, and refuse connections."""

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
        self._open = 0
        self._idle = threading.Condition(self._lock)
        self._ends: set[socket.socket] = set()
        self._refusing = False
        self.refused = 0
        """Connections turned away so far."""
        self._flowing = threading.Event()
        self._flowing.set()
        self.fired = threading.Event()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def arm(self, direction: str, countdown: int, action: Callable[[], None], *, swallow: bool = False) -> None:
        """At the `countdown`-th `request` or `response` from now: forward it (unless `swallow`), then run `action`."""
        with self._lock:
            self._direction, self._left, self._action, self._swallow = direction, countdown, action, swallow
            self._last = ""
            self.fired.clear()

    def cut(self) -> int:
        """End every connection at once, in the middle of whatever it carries; how many there were."""
        with self._lock:
            ends = list(self._ends)
        for end in ends:
            _end(end, socket.SHUT_RDWR)
        return len(ends) // 2

    def stall(self) -> None:
        """Hold back all that is sent from now on, both ways, until `flow`; connections stay open and new ones are taken."""
        self._flowing.clear()

    def flow(self) -> None:
        """Pass on what was held back."""
        self._flowing.set()

    def refuse(self, refusing: bool = True) -> None:
        """Turn new connections away (or no longer), as a server does that has none left; those there are stay."""
        with self._lock:
            self._refusing = refusing

    def wait_idle(self, timeout: float = 60.0) -> None:
        """Wait until the server has ended every connection: what a dead client had sent is committed or rolled back then."""
        with self._lock:
            assert self._idle.wait_for(lambda: self._open == 0, timeout), (
                "the server keeps a connection of a dead client"
            )

    def close(self) -> None:
        """Stop accepting, and wait for the connections to end with their peers."""
        self._flowing.set()
        self.wait_idle()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._acceptor.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self.listener.accept()
                server = self._server_for(client)
                if server is None:
                    continue
                with self._lock:
                    self._open += 1
                    self._ends |= {client, server}
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                requests = threading.Thread(target=self._requests, args=(client, server), daemon=True)
                requests.start()
                threading.Thread(target=self._responses, args=(client, server, requests), daemon=True).start()

    def _server_for(self, client: socket.socket) -> socket.socket | None:
        """The other end; None when the client is turned away, or the server itself is not there."""
        with self._lock:
            refusing = self._refusing
        if not refusing:
            with suppress(OSError):
                return socket.create_connection(self.target)
        client.close()
        self.refused += 1
        return None

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                self._flowing.wait()
                due = self._due("request")
                server.sendall(data)
                if due:
                    self._act()
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _responses(self, client: socket.socket, server: socket.socket, requests: threading.Thread) -> None:
        cut = False
        with suppress(OSError):
            while data := server.recv(CHUNK):
                if cut:
                    continue
                self._flowing.wait()
                due = self._due("response")
                cut = due and self._swallow
                if not cut:
                    with suppress(OSError):
                        client.sendall(data)
                if due:
                    self._act()
                if cut:
                    _end(client, socket.SHUT_RDWR)
        _end(client, socket.SHUT_RDWR)
        requests.join()
        with self._lock:
            self._ends -= {client, server}
        client.close()
        server.close()
        with self._lock:
            self._open -= 1
            self._idle.notify_all()

    def _act(self) -> None:
        self._action()
        self.fired.set()

    def _due(self, direction: str) -> bool:
        with self._lock:
            begins = direction != self._last
            self._last = direction
            if not begins or direction != self._direction or self._left <= 0:
                return False
            self._left -= 1
            return self._left == 0


def _end(side: socket.socket, how: int) -> None:
    with suppress(OSError):
        side.shutdown(how)
