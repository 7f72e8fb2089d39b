"""Looking at the processes that work, and draining one."""

from collections.abc import Sequence

from chokaq.jobs.ids import new_id
from chokaq.operations.actor import By, require_operator
from chokaq.operations.databases import Databases
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import check_id
from chokaq.operations.telling import command
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session
from chokaq.store.records import WorkerView
from chokaq.store.repairs import RepairAnswer

MAX_WORKERS = 100


def list_workers(session: Session, *, ended: bool = False) -> list[WorkerView]:
    """The registry, newest first, at most 1,000; `ended`: also those that have ended within the last week."""
    return session.list_workers(ended=ended)


def check_workers(worker_ids: Sequence[str]) -> list[str]:
    """1 to 100 distinct worker ids in their stored form, in the order named. Raises OperationError."""
    distinct = list(dict.fromkeys(check_id(worker_id, "worker") for worker_id in worker_ids))
    if not 1 <= len(distinct) <= MAX_WORKERS:
        raise OperationError(f"drain 1 to {MAX_WORKERS} workers at a time, not {len(distinct):,}")
    return distinct


@command("drain")
def drain_workers(databases: Databases, worker_ids: Sequence[str], who: By) -> list[RepairAnswer]:
    """As `drain_worker`, for workers of whichever database: each is looked for. Raises a StoreError when one that was not found
    may be in a database that does not answer."""
    require_operator(who)
    return [_drain(databases, worker_id, who) for worker_id in worker_ids]


def _drain(databases: Databases, worker_id: str, who: By) -> RepairAnswer:
    failed: StoreError | None = None
    for name in databases.names:
        try:
            answer = databases.run(name, lambda opened: _drain_one(opened.session, worker_id, who))
        except StoreError as error:
            failed = failed or error
            continue
        if answer.result != "unknown":
            return answer
    if failed is not None:
        raise failed
    return answer


@command("drain")
def drain_worker(session: Session, worker_id: str, who: By) -> RepairAnswer:
    """Tell one worker to take nothing new, finish what it runs, and end; its supervisor replaces it. Raises OperationError."""
    require_operator(who)
    return _drain_one(session, worker_id, who)


def _drain_one(session: Session, worker_id: str, who: By) -> RepairAnswer:
    return session.drain_worker(check_id(worker_id, "worker"), who.actor, who.reason, request=new_id())
