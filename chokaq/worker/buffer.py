"""Jobs fetched but not started, in the order the store gave them."""

from collections import deque
from collections.abc import Iterable

from chokaq.worker.claims import Claim


class Buffer:
    """Two lines: jobs that have never crashed a process, and those that have (they are let through one at a time)."""

    __slots__ = ("_sound", "_suspect")

    def __init__(self) -> None:
        self._sound: deque[Claim] = deque()
        self._suspect: deque[Claim] = deque()

    def __len__(self) -> int:
        return len(self._sound) + len(self._suspect)

    @property
    def suspects(self) -> int:
        """How many wait that have crashed a process before."""
        return len(self._suspect)

    def waited(self, now: float) -> float:
        """Seconds the oldest sound claim has waited; 0 without one."""
        return now - self._sound[0].since if self._sound else 0.0

    def push(self, claim: Claim) -> None:
        """Put a claim at the end of its line."""
        (self._suspect if claim.is_suspect else self._sound).append(claim)

    def pop(self, *, suspects: bool) -> Claim | None:
        """The next claim; suspects, when allowed, first: they have waited once already. None: nothing may go."""
        if suspects and self._suspect:
            return self._suspect.popleft()
        return self._sound.popleft() if self._sound else None

    def trim_suspects(self, keep: int) -> list[Claim]:
        """Take out the last suspects beyond `keep`."""
        return [self._suspect.pop() for _ in range(len(self._suspect) - keep)]

    def trim_sound(self, keep: int) -> list[Claim]:
        """Take out the last sound claims beyond `keep`."""
        return [self._sound.pop() for _ in range(len(self._sound) - keep)]

    def take_out(self, breaker: object) -> list[Claim]:
        """Take out all claims of one type, by its breaker."""
        taken = [claim for claim in (*self._suspect, *self._sound) if claim.breaker is breaker]
        if taken:
            for line in (self._suspect, self._sound):
                kept = [claim for claim in line if claim.breaker is not breaker]
                line.clear()
                line.extend(kept)
        return taken

    def clear(self) -> Iterable[Claim]:
        """Take out everything."""
        claims = [*self._suspect, *self._sound]
        self._suspect.clear()
        self._sound.clear()
        return claims
