"""The bulletin: what the supervisor writes is what a process forked later reads, whole or not at all."""

import os
import time
from collections.abc import Iterator

import pytest

from chokaq.config.settings import QueueSettings, Settings
from chokaq.supervisor import bulletin as module
from chokaq.supervisor.board import Board
from chokaq.supervisor.bulletin import Bulletin, CrewNote, Phase, PostNote, QueueNote, describe
from chokaq.supervisor.children import Assignment, Child
from chokaq.supervisor.crew import Crew
from chokaq.supervisor.spawn import Entries

NOTE = CrewNote(Phase.RUNNING, [QueueNote("emails", [PostNote(0, 3, True), PostNote(1, None, False)])], {"main": 2})


@pytest.fixture
def bulletin() -> Iterator[Bulletin]:
    """An empty one."""
    bulletin = Bulletin()
    yield bulletin
    bulletin.close()


def test_nothing_is_said_before_the_first_note(bulletin: Bulletin) -> None:
    assert bulletin.read() is None
    assert bulletin.looked_at is None
    assert bulletin.served_at == 0.0


def test_a_note_is_read_back_with_the_time_of_the_last_look(bulletin: Bulletin) -> None:
    before = time.monotonic()
    bulletin.write(NOTE)
    first = bulletin.looked_at
    bulletin.write(NOTE)
    again = bulletin.looked_at
    assert bulletin.read() == NOTE
    assert first is not None
    assert again is not None
    assert before <= first <= again <= time.monotonic()
    shorter = CrewNote(Phase.STOPPING, [])
    bulletin.write(shorter)
    assert bulletin.read() == shorter


def test_a_process_forked_before_the_note_reads_it_and_answers(bulletin: Bulletin) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.read(reading, 1)
            if bulletin.read() == NOTE:
                bulletin.serve()
                code = 0
        finally:
            os._exit(code)
    os.close(reading)
    bulletin.write(NOTE)
    os.write(writing, b"x")
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert 0 < bulletin.served_at <= time.monotonic()


def test_a_writer_that_is_stopped_in_the_middle_is_not_believed(bulletin: Bulletin) -> None:
    bulletin.write(NOTE)
    bulletin._words[module._MARK] |= 1
    assert bulletin.read() is None
    # It looks again, and its next note is whole.
    bulletin.write(CrewNote(Phase.STOPPING, []))
    assert bulletin.read() == CrewNote(Phase.STOPPING, [])


def test_a_note_whose_bytes_do_not_fit_its_sum_is_not_believed(bulletin: Bulletin) -> None:
    bulletin.write(NOTE)
    bulletin._memory[module._HEADER + 2] ^= 0xFF
    assert bulletin.read() is None


def test_the_crew_is_described_by_its_posts() -> None:
    board = Board(slots=4, runners=1)
    settings = Settings(queues={name: QueueSettings(name=name) for name in ("alpha", "beta")})
    crew = Crew(settings, board, Entries(lambda *_args: 0, lambda *_args: 0), lambda: None)
    here, leaving, _ = (
        crew.open_post(Assignment(settings.queues[name], settings)) for name in ("alpha", "alpha", "beta")
    )
    here.current = Child(pid=-1, slot=3, forked_at=0.0, name="alpha#0", ready_at=1.0)
    leaving.current = Child(pid=-2, slot=1, forked_at=0.0, name="alpha#1", ready_at=1.0, drain_reason="told")
    crew.keepers._kept["main"].child = Child(pid=-3, slot=2, forked_at=0.0, name="maintenance")
    assert describe(crew, Phase.STARTING) == CrewNote(
        Phase.STARTING,
        [
            QueueNote("alpha", [PostNote(0, 3, True), PostNote(1, 1, False)]),
            QueueNote("beta", [PostNote(0, None, False)]),
        ],
        {"main": 2},
    )
    board.close()


def test_so_many_queues_as_a_note_names_fit_those_in_need_first(
    bulletin: Bulletin, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = [PostNote(index, 1_000_000, False) for index in range(4)]
    bulletin.write(
        CrewNote(Phase.RUNNING, [QueueNote("x" * 255, posts) for _ in range(module.MAX_QUEUES)], {"main": 1})
    )
    note = bulletin.read()
    assert note is not None
    assert len(note.queues) == module.MAX_QUEUES
    monkeypatch.setattr(module, "MAX_QUEUES", 1)
    board = Board(slots=2, runners=1)
    settings = Settings(queues={name: QueueSettings(name=name) for name in ("well", "ill")})
    crew = Crew(settings, board, Entries(lambda *_args: 0, lambda *_args: 0), lambda: None)
    well = crew.open_post(Assignment(settings.queues["well"], settings))
    crew.open_post(Assignment(settings.queues["ill"], settings))
    well.current = Child(pid=-1, slot=0, forked_at=0.0, name="well#0", ready_at=1.0)
    assert [queue.name for queue in describe(crew, Phase.RUNNING).queues] == ["ill"]
    board.close()
