"""What the supervisor and its maintenance process say to each other: one JSON message per packet of a SOCK_SEQPACKET pair.

The supervisor sends death notices and, at the end, the go-ahead to stop; maintenance acknowledges each notice once the store
has taken it. A notice may arrive twice (a new incarnation gets all that were not acknowledged): releasing twice is harmless.
"""

import socket

import msgspec

from chokaq.store.records import DeathNotice

MAX_MESSAGE = 200_000
"""Bytes a packet may have; the kernel's default send buffer of a unix socket takes 212,992."""


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """A worker has died: release what it held."""

    number: int
    notice: DeathNotice


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """No child is left: end once every notice sent before this one is acknowledged."""


class Ack(msgspec.Struct, frozen=True):
    """The notice of that number has been carried out."""

    number: int


_ORDERS = msgspec.json.Decoder(Notice | Stop)
_ACKS = msgspec.json.Decoder(Ack)


def pair() -> tuple[socket.socket, socket.socket]:
    """The supervisor's end and the maintenance end, both non-blocking."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def encode(message: Notice | Stop | Ack) -> bytes:
    """One packet."""
    return msgspec.json.encode(message)


def receive_orders(channel: socket.socket) -> tuple[list[Notice | Stop], bool]:
    """Everything that has arrived, and whether the supervisor is still there."""
    packets, open_ = _packets(channel)
    return [_ORDERS.decode(packet) for packet in packets], open_


def receive_acks(channel: socket.socket) -> tuple[list[Ack], bool]:
    """Everything that has arrived, and whether maintenance is still there."""
    packets, open_ = _packets(channel)
    return [_ACKS.decode(packet) for packet in packets], open_


def _packets(channel: socket.socket) -> tuple[list[bytes], bool]:
    packets: list[bytes] = []
    while True:
        try:
            packet = channel.recv(MAX_MESSAGE)
        except BlockingIOError:
            return packets, True
        except OSError:
            return packets, False
        if not packet:
            return packets, False
        packets.append(packet)
