"""Ids increase, in every thread, after every fork, whatever the clock does."""

import os
import threading
from unittest.mock import patch

from ulid import ULID

from chokaq.jobs.ids import UlidGenerator, new_id


def test_ids_increase_and_are_ulids() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert all(str(ULID.from_str(one)) == one for one in ids[:50])


def test_ids_of_many_threads_are_distinct() -> None:
    found: list[list[str]] = []

    def mint() -> None:
        found.append([new_id() for _ in range(2_000)])

    threads = [threading.Thread(target=mint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in found)
    assert len({one for ids in found for one in ids}) == 8_000


def test_ids_increase_when_the_clock_steps_back() -> None:
    generator = UlidGenerator()
    with patch("chokaq.jobs.ids.time.time_ns", side_effect=[5_000_000_000, 4_000_000_000, 6_000_000_000]):
        ids = [generator.mint() for _ in range(3)]
    assert ids == sorted(set(ids))


def test_a_forked_child_does_not_repeat_its_parents_ids() -> None:
    generator = UlidGenerator()
    with patch("chokaq.jobs.ids.time.time_ns", return_value=5_000_000_000):
        generator.mint()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, "".join(generator.mint() for _ in range(10)).encode())
            os._exit(0)
        os.close(writer)
        mine = {generator.mint() for _ in range(10)}
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as stream:
            text = stream.read().decode()
    theirs = {text[start : start + 26] for start in range(0, len(text), 26)}
    assert len(theirs) == 10
    assert not mine & theirs
