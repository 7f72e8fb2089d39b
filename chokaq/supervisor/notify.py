"""systemd's readiness protocol: datagrams to the socket named in NOTIFY_SOCKET. Silent when there is none."""

import os
import socket
import time
from collections import deque
from collections.abc import Mapping

WAITING = 32
"""Messages kept for a manager whose buffer is full; then the oldest are forgotten."""


class Notifier:
    """Tells the service manager how the program stands. Never blocks, never raises: a deaf manager changes nothing."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._socket: socket.socket | None = None
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._every: float | None = None
        self._last_beat = float("-inf")
        self._last_status = ""
        self._waiting: deque[str] = deque(maxlen=WAITING)
        if self._address[:1] not in {"/", "@"}:
            return
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        for_us = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = environ.get("WATCHDOG_USEC", "")
        if for_us and usec.isdecimal() and int(usec) > 0:
            # Half the interval is what systemd recommends.
            self._every = int(usec) / 2e6

    @property
    def watchdog_every(self) -> float | None:
        """Seconds between two watchdog messages; None when no watchdog is asked for."""
        return self._every

    def ready(self) -> None:
        """Start-up or reload is complete."""
        self._send("READY=1")

    def reloading(self) -> None:
        """A reload has begun; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The drain has begun."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; sent only when it changes."""
        if text != self._last_status:
            self._last_status = text
            self._send(f"STATUS={text}")

    def beat(self, now: float) -> None:
        """Feed the watchdog when it is due; send again what the manager had no room for."""
        self._flush()
        if self._every is not None and now - self._last_beat >= self._every:
            self._last_beat = now
            self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket; also in a child, which must not speak for the parent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str) -> None:
        if self._socket is not None:
            self._waiting.append(message)
            self._flush()

    def _flush(self) -> None:
        while self._socket is not None and self._waiting:
            try:
                self._socket.sendto(self._waiting[0].encode(), self._address)
            except BlockingIOError:
                return
            except OSError:
                # Nobody listens there.
                self._waiting.clear()
                return
            self._waiting.popleft()
