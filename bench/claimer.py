"""One claimer as a program: a session that fetches, starts and archives until the queue is empty. Started by bench.claimers."""

import sys
import time

import orjson

from bench.application import QUEUE
from chokaq.jobs.ids import new_id
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import Fetch, Held, Registration, WorkerInfo

EMPTY_TRIES = 3
"""Empty answers in a row that end a claimer: jobs that others hold locked look like none."""


def main() -> None:
    """Arguments: URL, schema, jobs a call. Says `ready`, waits for a line, works, answers one JSON object."""
    url, schema, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    session = open_store(DatabaseSettings(url=url, schema=schema, command_timeout=120.0), own_process=True).session()
    info = WorkerInfo(worker_id=new_id(), queue=QUEUE, host="bench", pid=1, version="0")
    worker = session.register_worker(info)
    session.fetch_jobs(worker, 1, 0)
    session.start_jobs(worker, [])
    session.archive_succeeded(worker, [])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.monotonic()
    done, ended = _work(session, worker, batch)
    sys.stdout.write(orjson.dumps({"done": done, "began": began, "ended": ended}).decode() + "\n")
    sys.stdout.flush()
    session.close()


def _work(session: Session, worker: Registration, batch: int) -> tuple[int, float]:
    """Jobs archived, and when the last of them was."""
    done, request, empty, ended = 0, 1, 0, time.monotonic()
    while empty < EMPTY_TRIES:
        request += 1
        fetch: Fetch = session.fetch_jobs(worker, request, batch)
        if not fetch.jobs:
            empty = empty + 1 if fetch.next_due_ms is None else 0
            continue
        empty = 0
        held = [Held(job.id, job.lease) for job in fetch.jobs]
        session.start_jobs(worker, held)
        session.archive_succeeded(worker, held)
        done += len(held)
        ended = time.monotonic()
    return done, ended


if __name__ == "__main__":
    main()
