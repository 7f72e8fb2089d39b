"""Answers that many pages ask for are read once: whoever asks the same within a moment gets the same answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")

MAX_KEPT = 500


class Kept(Generic[Answer]):
    """An answer under way or read."""

    def __init__(self, task: "asyncio.Task[Answer]") -> None:
        self.task = task
        self.at: float | None = None
        """When it was there; None: under way."""


class Shared:
    """A small store of answers, by question."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[Hashable, Kept[Any]] = {}

    async def ask(
        self, key: Hashable, read: Callable[[], Awaitable[Answer]], keep: Callable[[Answer], float] = lambda _: 1.0
    ) -> tuple[Answer, float]:
        """The answer and its age in seconds. `keep`: for how many seconds an answer serves; errors serve nobody else."""
        kept: Kept[Answer] | None = self._kept.get(key)
        if kept is None or (kept.at is not None and self._clock() - kept.at >= keep(kept.task.result())):
            kept = self._begin(key, read)
        try:
            answer = await asyncio.shield(kept.task)
        except BaseException:
            if kept.task.done() and self._kept.get(key) is kept:
                del self._kept[key]
            raise
        return answer, 0.0 if kept.at is None else max(0.0, self._clock() - kept.at)

    def forget(self, fits: Callable[[Hashable], bool] = lambda _: True) -> None:
        """Ask anew from now on."""
        for key in [key for key in self._kept if fits(key)]:
            del self._kept[key]

    def _begin(self, key: Hashable, read: Callable[[], Awaitable[Answer]]) -> Kept[Answer]:
        async def reading() -> Answer:
            return await read()

        kept = Kept(asyncio.get_running_loop().create_task(reading()))
        kept.task.add_done_callback(lambda task: self._done(kept, task))
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept

    def _done(self, kept: Kept[Answer], task: "asyncio.Task[Answer]") -> None:
        if not task.cancelled() and task.exception() is None:
            kept.at = self._clock()
