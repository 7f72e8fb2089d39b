"""The proxy counts what a client says, however the bytes arrive."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from bench.wire import Messages, Wire

BATCH, RPC, LOGIN, PRELOGIN = 1, 3, 16, 18
EXECUTE, PREPEXEC = 12, 13


def packet(kind: int, body: bytes, *, last: bool = True) -> bytes:
    """A TDS packet."""
    return bytes([kind, int(last)]) + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body


def rpc(number: int, rest: bytes = b"") -> bytes:
    """The body of an RPC that names its procedure by number, behind a header of 22 bytes."""
    return (22).to_bytes(4, "little") + bytes(18) + b"\xff\xff" + number.to_bytes(2, "little") + rest


@pytest.fixture
def messages() -> tuple[Messages, "Counter[str]"]:
    """A reader of one client's stream, and its counts."""
    counts: Counter[str] = Counter()
    return Messages(counts, threading.Lock()), counts


def test_a_message_of_many_packets_is_one(messages: tuple[Messages, "Counter[str]"]) -> None:
    reader, counts = messages
    first = packet(RPC, rpc(PREPEXEC, b"x" * 4000), last=False)
    reader.sent(first + packet(RPC, b"y" * 4000, last=False))
    assert counts == {}
    reader.sent(packet(RPC, b"z" * 10))
    assert counts == {"sp_prepexec": 1}


def test_several_messages_in_one_go_are_several(messages: tuple[Messages, "Counter[str]"]) -> None:
    reader, counts = messages
    reader.sent(packet(PRELOGIN, b"") + packet(LOGIN, b"who") + packet(BATCH, b"SELECT 1") + packet(RPC, rpc(EXECUTE)))
    assert counts == {"prelogin": 1, "login": 1, "batch": 1, "sp_execute": 1}


def test_bytes_that_arrive_one_by_one_count_the_same(messages: tuple[Messages, "Counter[str]"]) -> None:
    reader, counts = messages
    for byte in packet(RPC, rpc(EXECUTE, b"abc")) + packet(BATCH, b"SELECT 1"):
        reader.sent(bytes([byte]))
    assert counts == {"sp_execute": 1, "batch": 1}


def test_a_stream_behind_tls_is_counted_by_turns(messages: tuple[Messages, "Counter[str]"]) -> None:
    reader, counts = messages
    reader.sent(packet(PRELOGIN, b"hello"))
    reader.answered()
    reader.sent(b"\x17\x03\x03 encrypted")
    reader.sent(b"more of the same")
    reader.answered()
    reader.sent(b"the next question")
    reader.answered()
    assert counts == {"prelogin": 1, "unreadable": 2}


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """Answers every packet with one byte."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1 << 16):
                connection.sendall(b"!")

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()
    thread.join()
    listener.close()


def test_the_proxy_forwards_both_ways_and_counts_one_per_question(server: tuple[str, int]) -> None:
    with Wire(*server) as wire, socket.create_connection(("127.0.0.1", wire.port), timeout=10) as client:
        for _ in range(3):
            client.sendall(packet(BATCH, b"SELECT 1"))
            assert client.recv(1) == b"!"
        client.sendall(packet(RPC, rpc(EXECUTE)))
        assert client.recv(1) == b"!"
        assert wire.counts() == {"batch": 3, "sp_execute": 1}
