"""A child process from its fork to its exit code."""

import asyncio
import gc
import os
import signal
from typing import Any

import uvloop

from chokaq.config.settings import QueueSettings, Settings
from chokaq.jobs.errors import RegistrationError
from chokaq.observe.metrics import begin_process
from chokaq.observe.tracer import TracingNotInstalled, hand_over_spans, start_exporting
from chokaq.store.errors import StoreError
from chokaq.worker.boot import BootError, become_child, choose_store, complain, import_app, one_line, worker_info
from chokaq.worker.engine import Engine
from chokaq.worker.status import ExitCode, StatusSlot
from chokaq.worker.tally import Tally

_kept: list[asyncio.Runner] = []
"""The loop of this process, kept to its end."""


def run_child(settings: Settings, queue: QueueSettings, index: int, slot: StatusSlot, parent_pid: int) -> int:
    """Run one worker for `queue` until TERM has drained it; returns an ExitCode.

    The caller ends the process with it at once, by os._exit: neither threads nor the loop are brought to an end here.
    Called right after the fork, signals still blocked; `index`: its number among the queue's children here; `parent_pid`: the
    supervisor. When it cannot boot it prints one line on stderr and returns BOOT_FAILED; any other exception is a defect.
    """
    title = f"chokaq: {queue.name} #{index}"
    if not become_child(title, parent_pid, lambda: os._exit(ExitCode.DONE)):
        return ExitCode.ORPHANED
    try:
        app = import_app(settings)
        # What was imported lives as long as the process: the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        # Never closed: that would wait for every thread of the application's `asyncio.to_thread`, and take TERM's handler away.
        # All is settled when this returns, and the caller ends the process.
        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        _kept.append(runner)
        return runner.run(_serve(settings, queue, app, slot, parent_pid, tally=_begin_counting(app, queue)))
    except (BootError, RegistrationError, StoreError, TracingNotInstalled) as error:
        _ignore_signals()
        complain(title, one_line(error))
        return ExitCode.BOOT_FAILED


def _begin_counting(app: Any, queue: QueueSettings) -> Tally | None:
    """This child's figures, those of its handlers' own enqueues included; None when the worker counts nothing."""
    recorder = begin_process()
    if recorder is None:
        return None
    app.count_with(recorder)
    return Tally(recorder, queue.name)


async def _serve(
    settings: Settings, queue: QueueSettings, app: Any, slot: StatusSlot, parent_pid: int, *, tally: Tally | None
) -> ExitCode:
    worker = worker_info(queue)
    if settings.tracing.enabled:
        start_exporting(worker.worker_id)
    engine = Engine(
        settings=settings,
        queue=queue,
        app=app,
        store=choose_store(settings, queue.name),
        slot=slot,
        worker=worker,
        parent_pid=parent_pid,
        tally=tally,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: engine.drain(hurry=slot.in_a_hurry()))
    try:
        return await engine.run()
    finally:
        await app.aclose()
        if settings.tracing.enabled:
            hand_over_spans()
        _ignore_signals()


def _ignore_signals() -> None:
    """Whoever asks a child to end that is ending anyway must not make its exit code another one, or a death by signal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
