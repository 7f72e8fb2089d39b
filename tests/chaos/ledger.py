"""What the handlers themselves wrote down, read while it grows."""

import threading
from pathlib import Path

import msgspec


class Execution(msgspec.Struct, kw_only=True):
    """One run of one handler."""

    job: str
    lease: int
    attempt: int
    """As its context told it: 1 for the first."""
    worker: str
    pid: int
    kind: str
    began_wall_ms: int
    """By the clock of its process."""
    began_ns: int
    """Monotonic clock of the host."""
    ended_ns: int | None = None
    """None: its handler never ended."""
    how: str | None = None
    """`ok`, `cancelled:<reason>`, or the name of what it raised."""
    times: int = 1
    """How often it began: more than once under one lease is always wrong."""


class Ledger:
    """The file, as far as it has been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.executions: dict[tuple[str, int], Execution] = {}
        """By (job id, lease)."""
        self.done: set[str] = set()
        """Jobs of which a handler has ended, however."""
        self._read = 0
        self._lock = threading.Lock()

    def read(self) -> "Ledger":
        """Take in what was added; itself."""
        if not self.path.exists():
            return self
        with self._lock, self.path.open("rb") as file:
            file.seek(self._read)
            fresh = file.read().rpartition(b"\n")[0]
            if fresh:
                self._read += len(fresh) + 1
                for line in fresh.decode().splitlines():
                    self._take(line.split(" "))
        return self

    def has_begun(self, job: str) -> bool:
        """True once a handler of that job has begun."""
        self.read()
        return any(job_id == job for job_id, _ in list(self.executions))

    def running(self, pid: int) -> list[Execution]:
        """What a process has begun and not ended."""
        self.read()
        return [run for run in list(self.executions.values()) if run.pid == pid and run.ended_ns is None]

    def _take(self, words: list[str]) -> None:
        mark, job, lease, attempt, worker, pid, type_key, wall_ms, mono_ns, how = words
        key = (job, int(lease))
        known = self.executions.get(key)
        if mark == "e":
            assert known is not None, f"an end without a beginning: {words}"
            known.ended_ns, known.how = int(mono_ns), how
            self.done.add(job)
        elif known is not None:
            known.times += 1
        else:
            self.executions[key] = Execution(
                job=job,
                lease=int(lease),
                attempt=int(attempt),
                worker=worker,
                pid=int(pid),
                kind=type_key.removeprefix("chaos."),
                began_wall_ms=int(wall_ms),
                began_ns=int(mono_ns),
            )
