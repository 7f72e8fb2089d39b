"""A child's memory does not grow with the jobs it has run (C19): the short form of `python -m bench soak`.

A second queue, whose handler keeps 1 KiB of every job, proves in the same run that growth would be seen.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import NewJob
from tests.support.ids import new_id

from .harness import PROGRAMS, Program
from .programs.soak import QUEUES, Look

pytestmark = [pytest.mark.processes, pytest.mark.slow]
CONFIG = """
app: soak:app
database: {url}
queues:
  steady: {{max_workers: 20}}
  leaky: {{max_workers: 20}}
"""
ROUNDS, JOBS, LOOKS = 15, 400, 2
"""Rounds, jobs of each queue in one, and looks after it."""
BLOCKS_PER_JOB, KB_PER_JOB = 0.6, 0.4
"""Growth that is too much: less than the smallest leak of all, one object per job; less than half of what is leaked on purpose."""


@pytest.fixture
def program(store: Store, store_options: DatabaseSettings, tmp_path: Path) -> Iterator[Program]:
    """A worker with one child per queue."""
    config = tmp_path / "chokaq.yaml"
    config.write_text(CONFIG.format(url=store_options.url))
    environ = {
        "LEDGER": str(tmp_path / "ledger"),
        "PYTHONPATH": os.pathsep.join([str(PROGRAMS), str(PROGRAMS.parents[2])]),
    }
    program = Program([str(PROGRAMS / "real_worker.py"), str(config)], tmp_path, environ)
    yield program
    program.destroy()


def run(program: Program, session: Session, kind: str, count: int) -> None:
    """Jobs of both queues at once, until all are done."""
    jobs = [
        NewJob(id=new_id(), queue=queue, type_key=f"{queue}.{kind}", payload=f'{{"n":{n}}}')
        for queue in QUEUES
        for n in range(count)
    ]
    ids = [job.id for job in jobs]
    for start in range(0, len(jobs), 1_000):
        session.enqueue_jobs(jobs[start : start + 1_000])
    over = {JobStatus.SUCCEEDED, JobStatus.FAILED}
    for start in range(0, len(ids), 1_000):
        part = ids[start : start + 1_000]
        program.until(lambda part=part: set(session.get_statuses(part)) <= over, f"the end of {kind}", 60)  # type: ignore[misc]


def growth(looks: list[Look]) -> tuple[float, float]:
    """Blocks and KiB per job, from the second third of the looks to the last; the first fills caches and buffers.

    The least of each third: what lingers for an instant only ever adds.
    """
    third = len(looks) // 3
    middle, last = looks[third : 2 * third], looks[2 * third :]
    jobs = JOBS * ROUNDS / 3
    return (
        (min(look.blocks for look in last) - min(look.blocks for look in middle)) / jobs,
        (min(look.private_kb for look in last) - min(look.private_kb for look in middle)) / jobs,
    )


@pytest.mark.timeout(240)
def test_thousands_of_jobs_leave_nothing_behind_in_their_child(
    program: Program, session: Session, tmp_path: Path
) -> None:
    program.wait("child_ready", 2)
    for _ in range(ROUNDS):
        run(program, session, "work", JOBS)
        for _ in range(LOOKS):
            run(program, session, "look", 1)
    looks = [msgspec.json.decode(line, type=Look) for line in (tmp_path / "ledger").read_bytes().splitlines()]
    steady, leaky = ([look for look in looks if look.queue == queue] for queue in QUEUES)

    for each in (steady, leaky):
        assert len(each) == ROUNDS * LOOKS
        assert len({look.pid for look in each}) == 1, "a child was replaced: nothing was measured"
    blocks, kb = growth(leaky)
    assert blocks > 2 * BLOCKS_PER_JOB, (blocks, "a leak of one object per job went unseen")
    assert kb > 1.5 * KB_PER_JOB, (kb, "a leak of 1 KiB per job went unseen")
    blocks, kb = growth(steady)
    assert blocks < BLOCKS_PER_JOB, (blocks, steady)
    assert kb < KB_PER_JOB, (kb, steady)
    assert program.end() == 0
