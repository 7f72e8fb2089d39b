"""A TCP proxy on loopback that counts the messages a client sends to a T-SQL server, by kind.

TDS is strictly request, then response. A request is one message of one or more packets; each packet has an 8-byte header (type,
status with the end-of-message bit, length). Where the stream cannot be read, because TLS hides it, a message is what one side
sends before the other side speaks.
"""

import socket
import threading
from collections import Counter
from contextlib import suppress

_CHUNK = 1 << 16
_HEADER = 8
_END_OF_MESSAGE = 1
_KINDS = {
    1: "batch",
    3: "rpc",
    6: "attention",
    7: "bulk",
    14: "transaction",
    16: "login",
    17: "sspi",
    18: "prelogin",
}
"""Types of TDS packets that clients send."""
_PROCEDURES = {
    1: "sp_cursor",
    2: "sp_cursoropen",
    10: "sp_executesql",
    11: "sp_prepare",
    12: "sp_execute",
    13: "sp_prepexec",
    14: "sp_prepexecrpc",
    15: "sp_unprepare",
}
"""Numbers by which an RPC names its procedure."""


class Messages:
    """Reads one client's stream and counts its messages."""

    def __init__(self, counts: "Counter[str]", lock: threading.Lock) -> None:
        self._counts, self._lock = counts, lock
        self._pending = b""
        self._skip = 0
        self._begins = True
        self._kind = ""
        self._ends = False
        self._opaque = False
        self._spoke = False

    def sent(self, data: bytes) -> None:
        """Bytes from the client."""
        if self._opaque:
            if not self._spoke:
                self._count("unreadable")
            self._spoke = True
            return
        self._spoke = True
        while data and not self._opaque:
            data = self._step(data)

    def answered(self) -> None:
        """The server has spoken."""
        self._spoke = False

    def _step(self, data: bytes) -> bytes:
        if self._skip:
            taken = min(self._skip, len(data))
            self._skip -= taken
            if not self._skip and self._ends:
                self._count(self._kind)
            return data[taken:]
        self._pending += data
        # The kind of an RPC stands behind its headers: wait for the whole first packet.
        if len(self._pending) < _HEADER:
            return b""
        kind, status, length = self._pending[0], self._pending[1], int.from_bytes(self._pending[2:4], "big")
        if kind not in _KINDS or length < _HEADER:
            self._opaque = True
            self._count("unreadable")
            return b""
        if self._begins and kind == 3 and len(self._pending) < length:
            return b""
        if self._begins:
            self._kind = _procedure(self._pending[_HEADER:length]) if kind == 3 else _KINDS[kind]
        self._ends = bool(status & _END_OF_MESSAGE)
        self._begins = self._ends
        rest, self._pending = self._pending[_HEADER:], b""
        self._skip = length - _HEADER
        if not self._skip and self._ends:
            self._count(self._kind)
        return rest

    def _count(self, kind: str) -> None:
        with self._lock:
            self._counts[kind] += 1


def _procedure(body: bytes) -> str:
    """What an RPC calls. The body begins with headers, whose length stands first (TDS 7.2 and later)."""
    start = int.from_bytes(body[:4], "little") if len(body) >= 4 else 0
    if start + 4 <= len(body) and body[start : start + 2] == b"\xff\xff":
        return _PROCEDURES.get(int.from_bytes(body[start + 2 : start + 4], "little"), "rpc")
    return "rpc"


class Wire:
    """Forwards every connection to (host, port), counting. Use it in a `with` block."""

    def __init__(self, host: str, port: int) -> None:
        """Listens at once, on a free port of loopback."""
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._sockets: list[socket.socket] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def counts(self) -> "Counter[str]":
        """Client messages so far, by kind."""
        with self._lock:
            return Counter(self._counts)

    def close(self) -> None:
        """Cut every connection and accept no more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            ends = list(self._sockets)
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets += [client, server]
                messages = Messages(self._counts, self._lock)
                for work in (self._requests, self._responses):
                    threading.Thread(target=work, args=(client, server, messages), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, messages: Messages) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                messages.sent(data)
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _responses(self, client: socket.socket, server: socket.socket, messages: Messages) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                messages.answered()
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        client.close()
        server.close()
