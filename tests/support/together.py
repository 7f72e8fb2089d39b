"""Real threads that start at the same instant."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]], timeout: float = 60.0) -> list[T]:
    """Run every call in a thread of its own, released by one barrier; the results in order.

    Raises the first error any of them raised, and AssertionError when one has not ended after `timeout` seconds.
    """
    barrier = threading.Barrier(len(calls))
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def run(index: int, call: Callable[[], T]) -> None:
        try:
            barrier.wait(timeout)
            results[index] = call()
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors[index] = error

    threads = [threading.Thread(target=run, args=(i, call), daemon=True) for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
    if errors:
        raise errors[min(errors)]
    assert len(results) == len(calls), f"{len(calls) - len(results)} of {len(calls)} threads have not ended"
    return [results[i] for i in range(len(calls))]
