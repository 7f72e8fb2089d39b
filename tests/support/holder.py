"""A worker as a test plays it: it registers, counts its fetch requests and holds leases; no loop, no process."""

from collections.abc import Sequence

from chokaq.lifecycle.states import Answer
from chokaq.store.protocol import Session
from chokaq.store.records import Fetch, Held, Registration

from .jobs import QUEUE, worker_info


class Holder:
    """One registered worker on one session."""

    def __init__(self, session: Session, queue: str = QUEUE) -> None:
        """Register a new worker for `queue`."""
        self.session = session
        self.worker: Registration = session.register_worker(worker_info(queue))
        self.request = 0

    @property
    def id(self) -> str:
        """The worker id."""
        return self.worker.worker_id

    def fetch(self, size: int = 10, cap: int | None = None) -> Fetch:
        """Fetch under the next request number."""
        self.request += 1
        return self.session.fetch_jobs(self.worker, self.request, size, cap)

    def claim(self, size: int = 10, cap: int | None = None) -> list[Held]:
        """Fetch, and answer the leases only."""
        return [Held(job.id, job.lease) for job in self.fetch(size, cap).jobs]

    def take(self, size: int = 10, cap: int | None = None) -> list[Held]:
        """Fetch and start: the jobs are Processing now."""
        held = self.claim(size, cap)
        self.start(held)
        return held

    def take_all(self, count: int) -> list[Held]:
        """Claim and start until this worker has `count` jobs: beside others a claim may come back short."""
        held: list[Held] = []
        while len(held) < count:
            held += self.take(count - len(held))
        return held

    def take_one(self) -> Held:
        """Fetch and start exactly one job."""
        held = self.take(1)
        assert len(held) == 1, "no job was ready"
        return held[0]

    def claim_one(self) -> Held:
        """Fetch exactly one job."""
        held = self.claim(1)
        assert len(held) == 1, "no job was ready"
        return held[0]

    def start(self, held: Sequence[Held]) -> None:
        """Start jobs this worker holds; every one must be applied."""
        assert self.session.start_jobs(self.worker, held) == [Answer.APPLIED] * len(held)

    def succeed(self, held: Sequence[Held]) -> None:
        """Archive jobs this worker runs; every one must be applied."""
        assert self.session.archive_succeeded(self.worker, held) == [Answer.APPLIED] * len(held)
