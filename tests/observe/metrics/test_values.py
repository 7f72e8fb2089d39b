"""The files of figures: whole numbers at every moment, entries that never move, and nobody else's files."""

import mmap
import os
import stat
import threading
from pathlib import Path

import pytest

from chokaq.observe.metrics.values import ValueFile, read_values, write_values


def test_what_is_written_is_read_while_it_is_open(tmp_path: Path) -> None:
    file = ValueFile(tmp_path / "a.db")
    one = file.add(("chokaq_one", "ü\n", ""), 1)
    two = file.add(("chokaq_two",), 3)
    one.view[one.base] += 2.5
    two.view[two.base + 2] = -1.0
    assert dict(read_values(file.path)) == {("chokaq_one", "ü\n", ""): (2.5,), ("chokaq_two",): (0.0, 0.0, -1.0)}
    file.close()
    one.view[one.base] += 1.0
    assert dict(read_values(file.path))["chokaq_one", "ü\n", ""] == (3.5,)


def test_a_file_grows_and_what_was_handed_out_before_still_counts(tmp_path: Path) -> None:
    file = ValueFile(tmp_path / "a.db")
    first = file.add(("first",), 1)
    size = file.path.stat().st_size
    for number in range(5_000):
        cells = file.add((f"entry {number}",), 1)
        cells.view[cells.base] = number
    first.view[first.base] = 7.0
    values = dict(read_values(file.path))
    assert file.path.stat().st_size > size
    assert values["first",] == (7.0,)
    assert all(values[f"entry {number}",] == (number,) for number in range(5_000))
    file.close()


def test_a_file_is_this_users_alone_and_never_taken_over(tmp_path: Path) -> None:
    file = ValueFile(tmp_path / "a.db")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        ValueFile(file.path)
    file.close()
    file.close()


def test_a_file_that_is_being_made_is_empty(tmp_path: Path) -> None:
    for content in (b"", b"\0\0", bytes(mmap.PAGESIZE)):
        (tmp_path / "a.db").write_bytes(content)
        assert list(read_values(tmp_path / "a.db")) == []


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"\x31\x4d\x51\x43\xff\xff\xff\x7f"])
def test_what_is_no_such_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.db does not hold figures of chokaq"):
        list(read_values(tmp_path / "a.db"))


def test_entries_written_at_once_are_read_as_they_were(tmp_path: Path) -> None:
    entries = {("a", "b"): (1.0, 2.0), ("marked", "x"): (), ("c",): (3.5,)}
    write_values(tmp_path / "a.db", entries)
    assert dict(read_values(tmp_path / "a.db")) == entries


def test_a_reader_never_sees_half_an_entry(tmp_path: Path) -> None:
    file = ValueFile(tmp_path / "a.db")
    done = threading.Event()

    def write() -> None:
        for number in range(3_000):
            cells = file.add((f"entry {number}",), 2)
            cells.view[cells.base] = cells.view[cells.base + 1] = number
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not done.is_set():
        values = list(read_values(file.path))
        assert [key for key, _ in values] == [(f"entry {number}",) for number in range(len(values))]
        assert len(values) >= seen
        seen = len(values)
    writer.join()
    file.close()


def test_a_full_disk_is_an_error_of_the_call_that_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ValueFile(tmp_path / "a.db")

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        file.add(("large",), 100_000)
    small = file.add(("small",), 1)
    small.view[small.base] = 1.0
    assert dict(read_values(file.path)) == {("small",): (1.0,)}
    file.close()
