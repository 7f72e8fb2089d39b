"""A supervisor whose processes obey control files, so that its own behaviour can be seen alone.

usage: fake_processes.py CONFIG CONTROL_FOLDER
CONTROL_FOLDER/<queue>.json: what a child of that queue does (see `Script`), read again several times a second.
CONTROL_FOLDER/maintenance.json: `{"acknowledge": false}` to keep notices. Notices received go to notices.jsonl.
"""

import ctypes
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from chokaq.config import load_settings
from chokaq.config.settings import QueueSettings, Settings
from chokaq.jobs.ids import new_id
from chokaq.maintenance.channel import Ack, Notice, encode, receive_orders
from chokaq.observe import configure_logging
from chokaq.store.records import Held
from chokaq.supervisor import renewal, run
from chokaq.supervisor.probes.process import run_probes
from chokaq.supervisor.rollout import Rollout
from chokaq.supervisor.spawn import Entries
from chokaq.worker.status import ExitCode, StatusSlot

CONTROL = Path(sys.argv[2])


class Script(msgspec.Struct):
    """What a fake child does."""

    boot: str = "ok"
    """`ok`, `fail` (the exit code of a failed boot), `crash` (a signal), `hang`, `slow` (step by step for a second)."""
    running: list[tuple[str, int, float]] = []
    """Handlers at work: job id, lease, seconds from boot to the hard deadline."""
    completed: int = 0
    memory_kb: int = 50_000
    only_pid: int | None = None
    """The child that the figures above, and `store`, are meant for; the others show none."""
    replace: bool = False
    """Whether the child of `only_pid` asks to be replaced, as an operator wanted."""
    store: bool = True
    """Whether the store answers; with `boot` `hang`, too."""
    stalled: bool = False
    """No pulse after the first."""
    term: str = "exit"
    """`exit`, `ignore`, `hurry`: exit once the drain has a grace, `linger`: drain without end."""
    exit: int | None = None
    """End with this code, having said that it drains unless `silent`."""
    silent: bool = False


def script(name: str) -> Script:
    """The control file of a queue."""
    try:
        return msgspec.json.decode((CONTROL / f"{name}.json").read_bytes(), type=Script)
    except FileNotFoundError:
        return Script()


def child(settings: Settings, queue: QueueSettings, index: int, slot: StatusSlot, parent_pid: int) -> int:
    """A child that follows its script; signals stay blocked and are taken one at a time."""
    born = time.monotonic()
    now = script(queue.name)
    if now.boot == "fail":
        sys.stderr.write(f"chokaq: {queue.name}#{index} cannot boot: as told\n")
        return ExitCode.BOOT_FAILED
    if now.boot == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    while now.boot == "hang":
        slot.reaches_store(now.store)
        (CONTROL / "waiting").write_text(str(os.getpid()))
        signal.sigtimedwait(set(), 0.05)
        now = script(queue.name)
    while now.boot == "slow" and time.monotonic() < born + 1.0:
        slot.progress()
        signal.sigtimedwait(set(), 0.05)
    slot.identify(new_id())
    begun: set[int] = set()
    first, told, lingers = True, False, False
    while True:
        now = script(queue.name)
        for runner, (job, lease, seconds) in enumerate(now.running):
            if runner not in begun:
                begun.add(runner)
                slot.begin(runner, Held(job, lease), born + seconds)
        for runner in [runner for runner in begun if runner >= len(now.running)]:
            begun.discard(runner)
            slot.end(runner)
        meant = now.only_pid in (None, os.getpid())
        slot.reaches_store(now.store or not meant)
        if first or not now.stalled:
            completed, memory_kb = (now.completed, now.memory_kb) if meant else (0, 1)
            slot.pulse(loop_lag_ms=0, running=len(begun), buffered=0, completed=completed, memory_kb=memory_kb)
        if now.replace and now.only_pid == os.getpid():
            slot.ask_replacement()
        if first:
            first = False
            slot.ready()
            os.kill(parent_pid, signal.SIGCHLD)
        told = signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, 0.03) is not None or told
        if now.exit is not None:
            if not now.silent:
                slot.draining()
            return now.exit
        if told and now.term == "linger" and not lingers:
            slot.draining()
            lingers = True
        if told and (now.term == "exit" or (now.term == "hurry" and slot.in_a_hurry())):
            slot.draining()
            return ExitCode.DONE


def maintenance(settings: Settings, notices: socket.socket, slot: StatusSlot, parent_pid: int) -> int:
    """Write down every notice, acknowledge it when allowed, end when told."""
    (CONTROL / "registered.json").write_bytes(msgspec.json.encode(settings.registered))
    slot.identify(new_id())
    slot.ready()
    waiting: list[Notice] = []
    stopping = False
    while True:
        slot.pulse(loop_lag_ms=0, running=0, buffered=0, completed=0, memory_kb=1)
        orders, alive = receive_orders(notices)
        if not alive:
            return ExitCode.ORPHANED
        for order in orders:
            if isinstance(order, Notice):
                with (CONTROL / "notices.jsonl").open("ab") as file:
                    file.write(msgspec.json.encode(order) + b"\n")
                waiting.append(order)
            else:
                stopping = True
        if acknowledging():
            for order in waiting:
                notices.send(encode(Ack(order.number)))
            waiting.clear()
            if stopping:
                return ExitCode.DONE
        select.select([notices], [], [], 0.05)


def acknowledging() -> bool:
    """Whether the control file lets maintenance acknowledge."""
    try:
        return bool(msgspec.json.decode((CONTROL / "maintenance.json").read_bytes())["acknowledge"])
    except FileNotFoundError:
        return True


def leave_an_orphan() -> None:
    """Become a subreaper, as PID 1 is, and leave a grandchild whose parent ends before it."""
    prctl_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(prctl_set_child_subreaper, 1, 0, 0, 0)
    reading, writing = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(3)
        os._exit(0)
    os.wait()
    os.close(writing)
    os.close(reading)


def break_once_ready() -> None:
    """A defect in the middle of the supervisor's loop."""
    step = Rollout.step

    def broken(self: Rollout, now: float) -> None:
        if self._crew.ready and not self._crew.stopping:
            raise ZeroDivisionError
        step(self, now)

    Rollout.step = broken  # type: ignore[method-assign]


if __name__ == "__main__":
    configure_logging("debug", "json", repeats=None)
    if os.environ.get("BREAK_ONCE_READY"):
        break_once_ready()
    if os.environ.get("BECOME_SUBREAPER"):
        leave_an_orphan()
    renewal.IMPORT_SECONDS = float(os.environ.get("IMPORT_SECONDS", renewal.IMPORT_SECONDS))
    settings = load_settings(Path(sys.argv[1]))
    if os.environ.get("BOOT_TIMEOUT"):
        # Shorter than the configuration allows.
        limits = msgspec.structs.replace(settings.supervisor, boot_timeout=float(os.environ["BOOT_TIMEOUT"]))
        settings = msgspec.structs.replace(settings, supervisor=limits)
    sys.exit(run(settings, entries=Entries(child, maintenance, probes=run_probes)))
