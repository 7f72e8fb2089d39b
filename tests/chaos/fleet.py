"""Real `chokaq worker` programs on one store, and everything a scenario can do to them. Whatever is started here is ended here."""

import os
import random
import signal
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from tests.chaos.ledger import Ledger
from tests.support.polling import wait_until
from tests.support.processes import ROOT
from tests.support.supervised import Event, Program, alive

PROGRAMS = Path(__file__).parent / "programs"
BOOT = 90.0
"""Seconds a replica may take to be ready on a loaded machine."""
ENDING = 60.0
"""Seconds a replica, or an orphan, may take to end: the longest grace and more."""
CONFIG = """
app: chaosapp:app
log_format: json
log_repeats: null
database: {{url: "{url}", command_timeout: {command_timeout}, lock_timeout: 5s, connect_timeout: 5s}}
queues:
  main: {{max_workers: {workers}, processes: {processes}}}
  side: {{max_workers: {workers}}}
defaults:
  circuit: false
  heartbeat: {heartbeat}
  zombie_timeout: {zombie_timeout}s
  fetched_timeout: {zombie_timeout}s
  stall_limit: {stall_limit}
  hard_limit_grace: 2s
  on_crash: retry
  crash_limit: 12
  max_attempts: 30
  execution_timeout: 10m
  retry_base_delay: 30ms
  retry_max_delay: 300ms
  retry_jitter: 20ms
supervisor: {{shutdown_grace: {grace}, respawn_min: 50ms, respawn_max: 500ms}}
maintenance: {{rescue_interval: 1s}}
"""


_OWN_ENDS = {75: "retired", 76: "orphaned", 78: "cannot boot"}


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How the replicas of a scenario are set up."""

    replicas: int = 1
    processes: int = 2
    workers: int = 12
    heartbeat: str = "1s"
    zombie_timeout: float = 15.0
    """Seconds."""
    stall_limit: str = "60s"
    command_timeout: str = "30s"
    grace: str = "20s"
    program: tuple[str, ...] = ("-m", "chokaq")
    """What runs `worker --config …`: arguments of the interpreter."""
    environ: dict[str, str] = {}


class Death(msgspec.Struct, frozen=True):
    """A process that was killed here."""

    what: str
    at_ms: int
    """Host's clock."""


class Fleet:
    """The replicas of one scenario."""

    def __init__(self, folder: Path, url: str, shape: Shape, chance: random.Random) -> None:
        self.shape = shape
        self.ledger = Ledger(folder / "ledger")
        self.ledger.path.touch()
        self.config = folder / "chokaq.yaml"
        self.programs: list[Program] = []
        """Every replica ever started, in order."""
        self.killed: dict[int, Death] = {}
        """By pid."""
        self._folder = folder
        self._url = url
        self._chance = chance
        self.configure()

    def configure(self, **changes: object) -> None:
        """Write the YAML file; `changes` of the shape count from now on."""
        self.shape = msgspec.structs.replace(self.shape, **changes)
        fields = {name: getattr(self.shape, name) for name in self.shape.__struct_fields__}
        fresh = self.config.with_name(".fresh.yaml")
        fresh.write_text(CONFIG.format(url=self._url, **fields))
        fresh.replace(self.config)

    # ── replicas ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def start(self, environ: dict[str, str] | None = None) -> Program:
        """One more replica; returns without waiting for it."""
        folder = self._folder / f"replica-{len(self.programs)}"
        folder.mkdir()
        paths = os.pathsep.join([str(PROGRAMS), str(ROOT)])
        program = Program(
            [*self.shape.program, "worker", "--config", str(self.config)],
            folder,
            {
                "CHAOS_LEDGER": str(self.ledger.path),
                "PYTHONPATH": paths,
                "PYTHONDONTWRITEBYTECODE": "1",
                **self.shape.environ,
                **(environ or {}),
            },
        )
        self.programs.append(program)
        return program

    def start_all(self) -> None:
        """As many as the shape says, ready."""
        fresh = [self.start() for _ in range(self.shape.replicas)]
        for program in fresh:
            self.wait_ready(program)

    def wait_ready(self, program: Program, count: int = 1) -> None:
        """Until a replica has become ready so many times, with its maintenance."""
        program.wait("supervisor_ready", count, timeout=BOOT)
        program.wait("maintenance_ready", timeout=BOOT)

    def living(self) -> list[Program]:
        """Replicas whose supervisor lives."""
        return [program for program in self.programs if program.process.poll() is None]

    def children(self, *programs: Program, queue: str | None = None) -> list[int]:
        """Pids of children that became ready and live."""
        where = {} if queue is None else {"queue": queue}
        return [
            event["pid"]
            for program in programs or self.living()
            for event in program.events("child_ready", **where)
            if alive(event["pid"])
        ]

    def maintenance(self, program: Program) -> int:
        """Pid of the living maintenance process of a replica, once there is one that is ready."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [event["pid"] for event in program.events("maintenance_ready") if alive(event["pid"])]
            return bool(found)

        program.until(look, "a maintenance process", BOOT)
        return found[-1]

    # ── harm ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    def kill(self, pid: int, what: str) -> None:
        """SIGKILL one process."""
        self.killed[pid] = Death(what, _now_ms())
        os.kill(pid, signal.SIGKILL)

    def kill_child(self) -> None:
        """SIGKILL of a ready child, preferably of one that is at work."""
        pids: list[int] = []

        def look() -> bool:
            # One that was killed a moment ago may not be reaped yet.
            pids[:] = [pid for pid in self.children() if pid not in self.killed]
            return bool(pids)

        wait_until(look, "a child to kill", BOOT)
        busy = [pid for pid in pids if self.ledger.running(pid)]
        self.kill(self._chance.choice(busy or pids), "child")

    def kill_maintenance(self) -> None:
        """SIGKILL of a maintenance process."""
        program = self._chance.choice(self.living())
        self.kill(self.maintenance(program), "maintenance")

    def kill_replica(self, program: Program) -> None:
        """SIGKILL of everything that belongs to a replica, at once: what the loss of its host looks like to the others."""
        at = _now_ms()
        self.killed |= {pid: Death("replica", at) for pid in program.pids()}
        os.killpg(program.pid, signal.SIGKILL)
        program.exit_code()
        program.until(lambda: not program.pids(), "the end of every process of the replica")

    def kill_supervisor(self, program: Program) -> None:
        """SIGKILL of a supervisor alone; its children are orphans that have to end by themselves."""
        os.kill(program.pid, signal.SIGKILL)
        program.exit_code()
        program.until(lambda: not program.pids(), "the end of every orphan", ENDING)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def drain(self, *programs: Program) -> None:
        """TERM to replicas (to every living one when none is named); each must end cleanly."""
        ending = list(programs) or self.living()
        for program in ending:
            program.send(signal.SIGTERM)
        codes = [program.exit_code(ENDING) for program in ending]
        assert codes == [0] * len(ending), f"exit codes {codes}; the log:\n{ending[0].tail()}"

    def deaths(self) -> dict[int, int]:
        """By pid, when it died (host's clock, ms): killed here, or by its supervisor, or by its own handler."""
        logged = {event["pid"]: _ms(event) for program in self.programs for event in self._logged(program)}
        return logged | {pid: death.at_ms for pid, death in self.killed.items()}

    def surprises(self, allowed: Iterable[str] = ()) -> list[str]:
        """Deaths that nothing here explains: a child ended by itself, or by its supervisor for a reason not `allowed`."""
        suicides = {run.pid for run in self.ledger.read().executions.values() if run.kind == "poison"}
        found = []
        for program in self.programs:
            reasons = {event["pid"]: event["reason"] for event in program.events("child_killed")}
            for event in self._logged(program):
                pid = event["pid"]
                why = reasons.get(pid) or _OWN_ENDS.get(event["exit_code"]) or "no reason known"
                if pid not in self.killed and pid not in suicides and why not in allowed:
                    found.append(f"{event['child']} (pid {pid}) died, {why}: {event}")
            found += [f"supervisor_failed: {event}" for event in program.events("supervisor_failed")]
        return found

    def destroy(self) -> None:
        """Kill whatever is left, by its id."""
        for program in self.programs:
            program.destroy()

    def tails(self) -> str:
        """The end of every replica's log."""
        return "\n".join(f"--- replica {number}\n{program.tail()}" for number, program in enumerate(self.programs))

    def _logged(self, program: Program) -> list[Event]:
        return [event for event in program.events("child_died") if event["signal"] is not None or event["exit_code"]]


def _ms(event: Event) -> int:
    return round(datetime.fromisoformat(event["time"]).timestamp() * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
