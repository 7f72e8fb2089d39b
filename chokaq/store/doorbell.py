"""The doorbell: wakes an idle child on this host the moment a job is committed, instead of at its next poll.

A lossy, non-blocking datagram. Each child listens on a 0600 socket of its own in a 0700 folder per database and queue; a ring
goes to one of them at random and, when that one refuses, to the next. Nothing depends on it: a ring that is lost costs a poll.
"""

import contextlib
import errno
import functools
import hashlib
import os
import random
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import structlog

from chokaq.observe.levels import verbose

_log = structlog.get_logger("chokaq")
_SUN_PATH_MAX = 107
"""Bytes a UNIX socket address can hold, less the closing NUL."""


class Bell:
    """One child's end of the doorbell; give `fileno()` to the event loop."""

    def __init__(self, listener: socket.socket, path: Path) -> None:
        self._socket = listener
        self._path = path

    def fileno(self) -> int:
        """The descriptor that becomes readable when somebody rang."""
        return self._socket.fileno()

    def drain(self) -> int:
        """Take all rings that wait; returns how many there were. Never blocks, never raises."""
        rings = 0
        with contextlib.suppress(OSError):
            while True:
                self._socket.recv(16)
                rings += 1
        return rings

    def close(self) -> int:
        """Take the socket off its folder and close it; harmless when repeated. Returns how many rings still waited."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        rings = self.drain()
        self._socket.close()
        return rings


class Doorbell:
    """The doorbells of one database on this host. Cheap; may be used before and after a fork, from any thread."""

    def __init__(self, identity: str) -> None:
        """`identity`: `Store.identity` of the database."""
        self._identity = identity

    def ring(self, queue: str) -> None:
        """Wake one child of the queue, if any listens here. Never blocks, never raises."""
        try:
            self._ring(self._folder(queue))
        except (OSError, AttributeError) as error:
            if verbose.debug:
                _log.debug("enqueue_notification_failed", queue=queue, error=str(error))

    def listen(self, queue: str) -> Bell:
        """Open a bell for this process. Raises OSError when the folder is not ours alone or no socket can be made there."""
        folder = self.folder(queue)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        _check_ours(str(folder))
        # Bound under a hidden name and renamed once it works: a ringer can never take a socket that is still being made
        # for a stale one and unlink it.
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        hidden, path = folder / f".{name}", folder / name
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            listener.setblocking(False)
            with _address(str(hidden)) as address:
                listener.bind(address)
            hidden.chmod(0o600)
            hidden.rename(path)
        except OSError:
            with contextlib.suppress(OSError):
                hidden.unlink()
            listener.close()
            raise
        return Bell(listener, path)

    def folder(self, queue: str) -> Path:
        """Where the bells of a queue stand. Names are hashed, so that they are short and never escape the folder."""
        return Path(self._folder(queue))

    def _folder(self, queue: str) -> str:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not base or not os.path.isdir(base):  # noqa: PTH112 - see `_ring`
            base = tempfile.gettempdir()
        return f"{base}/chokaq-{os.geteuid()}-{_key(self._identity, queue)}"

    def _ring(self, folder: str) -> None:
        # An idle worker waits for this, and each step is a cold one then. Plain strings instead of paths: a third less.
        try:
            names = [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208
        except FileNotFoundError:
            return
        if not names:
            return
        _check_ours(folder)
        random.shuffle(names)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            any(_rung(sender, f"{folder}/{name}") for name in names)


@functools.lru_cache(maxsize=1_024)
def _key(identity: str, queue: str) -> str:
    return hashlib.sha256(os.fsencode(f"{identity}\0{queue}")).hexdigest()[:16]


def _rung(sender: socket.socket, path: str) -> bool:
    try:
        with _address(path) as address:
            sender.sendto(b"\0", address)
    except OSError as error:
        # Nobody holds it any more. A full one (EAGAIN) belongs to a child that is awake anyway. Either way: the next.
        if error.errno == errno.ECONNREFUSED:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
        return False
    return True


def _check_ours(folder: str) -> None:
    """Refuse a folder that somebody else made, or may write to: they could read rings or point them elsewhere."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone; remove it")


@contextlib.contextmanager
def _address(path: str) -> Iterator[str]:
    """The socket's address; one that is too long is reached through an open descriptor of its folder."""
    if len(os.fsencode(path)) <= _SUN_PATH_MAX:
        yield path
        return
    parent, name = os.path.split(path)
    folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{name}"
    finally:
        os.close(folder)
