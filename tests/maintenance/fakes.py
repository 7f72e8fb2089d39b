"""A store that answers what a test tells it to, and remembers what it was asked."""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from chokaq.maintenance.channel import Ack, Notice, Stop, encode, pair, receive_acks
from chokaq.store.records import (
    AuditEntry,
    Beat,
    CrashPolicies,
    DeathNotice,
    Figures,
    Leadership,
    LiveQueue,
    QueueView,
    Registration,
    Released,
    WorkerInfo,
    WorkerView,
)

ME = "0MAINTENANCE00000000000000"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class FakeStore:
    """Store and session in one. `errors`: raised by the next calls, one each (None lets a call through)."""

    url = "fake://"

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.errors: deque[Exception | None] = deque()
        self.refused: dict[str, Exception] = {}
        """Operations that fail every time."""
        self.released: deque[Released] = deque()
        self.abandoned: deque[Released] = deque()
        self.zombies: deque[Released] = deque()
        self.purges: deque[int] = deque()
        self.leading = True
        self.queues = ["emails"]
        self.workers: list[WorkerView] = []
        self.overrides: dict[str, int] = {}
        """Zombie timeouts set live, by queue."""
        self.seconds = 0.0
        """The database's clock, since EPOCH."""
        self.opened = 0
        self.closed = 0

    def session(self) -> Any:
        """Open."""
        self._fail()
        self.opened += 1
        return self

    def close(self) -> None:
        """Close."""
        self.closed += 1

    def names(self, *without: str) -> list[str]:
        """The operations called, in order."""
        return [call[0] for call in self.calls if call[0] not in without]

    def register_worker(self, worker: WorkerInfo) -> Registration:
        """Register."""
        self._call("register_worker", worker.worker_id)
        return Registration(worker.worker_id, worker.queue, 7)

    def keep_alive(self, worker: Registration, beats: Sequence[Beat], figures: Figures) -> Any:
        """Beat."""
        self._call("keep_alive")
        return [], []

    def release_worker(self, by: Registration, notice: DeathNotice, policies: CrashPolicies) -> Released:
        """Release."""
        self._call("release_worker", notice.worker_id, notice.cause, policies)
        return self.released.popleft() if self.released else Released()

    def take_leadership(self, by: Registration, interval_ms: int) -> Leadership:
        """Lead or not."""
        self._call("take_leadership", interval_ms)
        return Leadership(self.leading, ME, 1, None, EPOCH + timedelta(seconds=self.seconds))

    def hot_queues(self) -> list[str]:
        """Queues."""
        self._call("hot_queues")
        return self.queues

    def list_workers(self) -> list[WorkerView]:
        """The registry."""
        self._call("list_workers")
        return self.workers

    def list_audit(self, _target: str | None, _limit: int, _after: int | None) -> list[AuditEntry]:
        """Nobody did anything."""
        self._call("list_audit")
        return []

    def list_queues(self) -> list[QueueView]:
        """Those with a zombie timeout of their own."""
        self._call("list_queues")
        return [
            QueueView(
                name=name,
                live=LiveQueue(zombie_timeout_ms=timeout),
                pending=0,
                scheduled=0,
                fetched=0,
                processing=0,
                succeeded_total=0,
                failed_total=0,
                retried_total=0,
                oldest_due_ms=None,
                live_workers=0,
                known=True,
            )
            for name, timeout in self.overrides.items()
        ]

    def recover_abandoned(self, by: Registration, queue: str, timeout_ms: int, cursor: str | None = None) -> Released:
        """A page."""
        self._call("recover_abandoned", queue, timeout_ms, cursor)
        return self.abandoned.popleft() if self.abandoned else Released()

    def archive_zombies(
        self, by: Registration, queue: str, timeout_ms: int, policies: CrashPolicies, cursor: str | None = None
    ) -> Released:
        """A page."""
        self._call("archive_zombies", queue, timeout_ms, cursor)
        return self.zombies.popleft() if self.zombies else Released()

    def purge_archive(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """A batch."""
        self._call("purge_archive", queue, older_than_ms, size)
        return self.purges.popleft() if self.purges else 0

    def purge_dlq(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """A batch."""
        self._call("purge_dlq", queue, older_than_ms, size)
        return 0

    def purge_leftovers(self, size: int = 1_000) -> int:
        """A batch."""
        self._call("purge_leftovers", size)
        return 0

    def roll_up(self) -> int:
        """Fold."""
        self._call("roll_up")
        return 0

    def _call(self, *what: Any) -> None:
        self._fail()
        self.calls.append(what)
        if what[0] in self.refused:
            raise self.refused[what[0]]

    def _fail(self) -> None:
        error = self.errors.popleft() if self.errors else None
        if error is not None:
            raise error


class FakeSlot:
    """A slot that only remembers."""

    def __init__(self) -> None:
        self.is_ready = False
        self.pulses = 0

    def identify(self, worker_id: str) -> None:
        """Nothing."""

    def progress(self) -> None:
        """Nothing."""

    def ready(self) -> None:
        """Remember."""
        self.is_ready = True

    def pulse(self, **_figures: int) -> None:
        """Count."""
        self.pulses += 1

    def begin(self, *_args: object) -> None:
        """Nothing."""

    def end(self, _runner: int) -> None:
        """Nothing."""

    def reaches_store(self, reachable: bool) -> None:
        """Nothing."""

    def in_a_hurry(self) -> bool:
        """Always."""
        return True

    def draining(self) -> None:
        """Nothing."""

    def ask_replacement(self) -> None:
        """Nothing: a maintenance process never fetches."""


class Boss:
    """The supervisor's end of the channel."""

    def __init__(self) -> None:
        self.ours, self.theirs = pair()

    def tell(self, number: int, worker_id: str = "W" * 26, cause: str = "crash", queue: str = "emails") -> None:
        """Send a death notice."""
        self.ours.send(encode(Notice(number, DeathNotice(worker_id=worker_id, queue=queue, cause=cause))))

    def stop(self) -> None:
        """Give the go-ahead to end."""
        self.ours.send(encode(Stop()))

    def acks(self) -> list[int]:
        """Numbers acknowledged since the last call."""
        acks: list[Ack] = receive_acks(self.ours)[0]
        return [ack.number for ack in acks]

    def die(self) -> None:
        """Close our end."""
        self.ours.close()

    def close(self) -> None:
        """Both ends."""
        self.ours.close()
        self.theirs.close()
