"""Runs a coroutine in the current task but in a copy of its context: long-lived runners, and no job sees another's variables."""

import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any

from chokaq.observe.running import Running, enter


@types.coroutine
def isolated(
    coroutine: Coroutine[Any, Any, Any],
    waits: Callable[[], None],
    job: Running | None = None,
    prepare: Callable[[], object] | None = None,
) -> Generator[Any, Any, Any]:
    """Await it: what the coroutine answers or raises, with every step taken in one copy of the context.

    `waits` is called when the coroutine waits for the first time. `job`: whom log lines in that context are about. `prepare` is
    called in that context before the first step.
    """
    run = copy_context().run
    if job is not None:
        run(enter, job)
    if prepare is not None:
        run(prepare)
    step: Callable[[Any], Any] = coroutine.send
    value: Any = None
    waiting = False
    while True:
        try:
            awaited = run(step, value)
        except StopIteration as done:
            return done.value
        if not waiting:
            waiting = True
            waits()
        try:
            step, value = coroutine.send, (yield awaited)
        except GeneratorExit:
            run(coroutine.close)
            raise
        except BaseException as error:  # noqa: BLE001 - thrown on into the coroutine, whatever it is
            step, value = coroutine.throw, error
