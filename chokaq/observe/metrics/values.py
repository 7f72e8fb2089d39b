"""Figures of one process in a file that others may read at any moment: numbers of 8 bytes, each written whole.

A header of 8 bytes says how much of the file is in use. Then come entries: two 4-byte lengths (of the key in bytes, of the values
in numbers), the key, padded to 8 bytes, the values. A key is the JSON array of a metric's name and its label values. An entry is
complete before the header speaks of it, and stays where it is: whoever holds its place adds to a number by one memory store.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

_FIRST_SIZE = 1 << 16
_HEADER = struct.Struct("=II")
_MAGIC = 0x43514D31
"""`CQM1`: another program's file is not taken for one of ours."""
_NUMBER = 8

Key = tuple[str, ...]
"""A metric's name and its label values."""
Entries = dict[Key, tuple[float, ...]]

_decoder = msgspec.json.Decoder(tuple[str, ...])


class Cells:
    """Numbers that lie side by side."""

    __slots__ = ("base", "view")

    def __init__(self, view: "memoryview[float]", base: int) -> None:
        """`view`: of doubles; the first number is `view[base]`."""
        self.view = view
        self.base = base


class ValueFile:
    """The writer's side; one process, one thread at a time for `add` and for each entry."""

    def __init__(self, path: Path) -> None:
        """Make the file, for this user only. Raises OSError, FileExistsError included."""
        self.path = path
        self._pid = os.getpid()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._size = self._used = 0
        self._grow(_FIRST_SIZE)
        self._use(_HEADER.size)

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked from the one that made it: two that add entries would overwrite each other's."""
        return os.getpid() == self._pid

    def add(self, key: Key, count: int) -> Cells:
        """A new entry of `count` numbers, all 0. Raises OSError when the file cannot grow."""
        text = msgspec.json.encode(key)
        start = self._used
        values = start + _HEADER.size + len(text) + -len(text) % _NUMBER
        end = values + count * _NUMBER
        while end > self._size:
            self._grow(self._size * 2)
        self._map[start : start + _HEADER.size] = _HEADER.pack(len(text), count)
        self._map[start + _HEADER.size : start + _HEADER.size + len(text)] = text
        self._use(end)
        return Cells(self._view, values // _NUMBER)

    def close(self) -> None:
        """Close the descriptor; what was mapped stays as long as somebody holds cells of it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _grow(self, size: int) -> None:
        # Blocks are reserved: a full disk is an error here, not a SIGBUS at some later store.
        os.posix_fallocate(self._file, 0, size)
        # Cells handed out before keep the old mapping, which shows the same pages.
        self._map = mmap.mmap(self._file, size)
        self._view = memoryview(self._map).cast("d")
        self._size = size

    def _use(self, end: int) -> None:
        self._used = end
        self._map[: _HEADER.size] = _HEADER.pack(_MAGIC, end)


def write_values(path: Path, entries: Entries) -> None:
    """Write a whole file at once. Raises OSError."""
    parts = [b""]
    for key, values in entries.items():
        text = msgspec.json.encode(key)
        parts += (_HEADER.pack(len(text), len(values)), text, b"\0" * (-len(text) % _NUMBER))
        parts.append(struct.pack(f"={len(values)}d", *values))
    body = b"".join(parts)
    parts[0] = _HEADER.pack(_MAGIC, _HEADER.size + len(body))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(parts[0] + body)


def read_values(path: Path) -> Iterator[tuple[Key, tuple[float, ...]]]:
    """Every entry of a file as it is now. Raises OSError, and ValueError for what is not such a file."""
    data = path.read_bytes()
    magic, used = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else (0, 0)
    if magic == 0:
        # Being made at this moment.
        return
    if magic != _MAGIC or used > len(data):
        raise ValueError(f"{path} does not hold figures of chokaq")
    at = _HEADER.size
    while at < used:
        length, count = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        key = _decoder.decode(data[at : at + length])
        at += length + -length % _NUMBER
        yield key, struct.unpack_from(f"={count}d", data, at)
        at += count * _NUMBER
