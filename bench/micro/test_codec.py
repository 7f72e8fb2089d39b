"""Payloads to JSON and back."""

from typing import Any

from bench.application import Noop
from chokaq.jobs.codec import decode, encode

JOB = Noop(12_345)
UNICODE = Noop(12_345, "äöü " * 24)


def test_encode_ascii(benchmark: Any) -> None:
    assert benchmark(encode, JOB)


def test_encode_what_must_be_escaped(benchmark: Any) -> None:
    assert benchmark(encode, UNICODE)


def test_decode(benchmark: Any) -> None:
    assert benchmark(decode, Noop, encode(JOB), "bench.noop.v1") == JOB
