"""One database, and the programs of two versions on it: workers, clients, commands; and the account of every job at the end."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from chokaq.lifecycle.states import KeyScope, Pillar
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import NewJob
from tests.chaos.evidence import Evidence, Rules, Standing
from tests.chaos.fleet import BOOT, Fleet, Shape
from tests.chaos.fleet import PROGRAMS as CHAOS_PROGRAMS
from tests.chaos.verifier import Verdict, judge
from tests.chaos.workload import Job
from tests.support.lab import PILLARS, Lab
from tests.support.polling import wait_until
from tests.support.processes import ROOT
from tests.support.supervised import Event, Program
from tests.upgrade.releases import Release, tree

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 150.0
"""Seconds that a stage may take on a loaded machine."""
CONFIG = """
app: chaosapp:app
log_format: json
database: {{url: "{url}", schema: {schema}, command_timeout: 60s, lock_timeout: 30s, connect_timeout: 15s}}
queues:
  main: {{max_workers: 12}}
  side: {{max_workers: 6}}
defaults:
  circuit: false
  heartbeat: 1s
  zombie_timeout: 90s
  fetched_timeout: 90s
  max_attempts: 30
  retry_base_delay: 30ms
  retry_max_delay: 300ms
  retry_jitter: 20ms
supervisor: {{shutdown_grace: 20s}}
maintenance: {{rescue_interval: 1s}}
"""

ON_PURPOSE = {"job_fatal"}
"""What the application's jobs do because they are meant to."""


class Client:
    """An application of one version that enqueues."""

    def __init__(self, folder: Path, path: str, config: Path, seed: int) -> None:
        self._answers, self._errors = folder / f"client-{seed}.out", folder / f"client-{seed}.err"
        with self._answers.open("wb") as out, self._errors.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAMS / "client.py"), str(seed)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": path, "CHOKAQ_CONFIG": str(config), "PYTHONDONTWRITEBYTECODE": "1"},
            )

    def answers(self) -> list[dict[str, Any]]:
        """What it was told so far; AssertionError with its own words when it has failed."""
        assert self.process.poll() in (None, 0), f"a client was refused:\n{self._errors.read_text()[-6_000:]}"
        whole = self._answers.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def stop(self) -> None:
        """Let it end its batch."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        assert code == 0, f"a client was refused:\n{self._errors.read_text()[-6_000:]}"

    def destroy(self) -> None:
        """Kill it if it still lives."""
        assert self.process.stdin is not None
        self.process.kill()
        self.process.stdin.close()
        self.process.wait()


class Deployment(Fleet):
    """Replicas of both versions; `old` and `new` say whose program is meant."""

    def __init__(self, folder: Path, options: DatabaseSettings, lab: Lab, release: Release) -> None:
        """`options`: a place where nothing is installed yet."""
        self.options, self.lab = options, lab
        self.old, self.new = tree(release.commit), ROOT
        self.clients: list[Client] = []
        super().__init__(folder, options.url, Shape(), random.Random(1))

    def configure(self, **changes: object) -> None:
        """Write the YAML file."""
        assert not changes
        self.config.write_text(CONFIG.format(url=self.options.url, schema=self.options.schema))

    # ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def worker(self, program: Path) -> Program:
        """One more replica with the program of a tree, ready."""
        replica = self.start({"PYTHONPATH": self._path(program)})
        self.wait_ready(replica)
        return replica

    def client(self, program: Path) -> Client:
        """One more application, which has been answered."""
        client = Client(self._folder, self._path(program), self.config, len(self.clients))
        self.clients.append(client)
        self._wait(lambda: bool(client.answers()), "the first answer to a client")
        return client

    def run(self, program: Path, *arguments: str, code: int = 0) -> str:
        """A command of a tree's program; what it printed."""
        ran = subprocess.run(
            [sys.executable, "-m", "chokaq", *arguments, "--config", str(self.config)],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": self._path(program), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == code, (
            f"{arguments} ended with {ran.returncode}:\n{ran.stdout[-3_000:]}{ran.stderr[-3_000:]}"
        )
        return ran.stdout + ran.stderr

    def imported(self, program: Path) -> str:
        """Where a program of that tree finds the library."""
        return subprocess.run(
            [sys.executable, "-c", "import chokaq; print(chokaq.__file__)"],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": self._path(program)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout.strip()

    def stop_clients(self, *clients: Client) -> None:
        """Every one when none is named."""
        for client in clients or self.clients:
            client.stop()

    def destroy(self) -> None:
        """Kill whatever is left."""
        for client in self.clients:
            client.destroy()
        super().destroy()

    # ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def work_on(self, count: int) -> None:
        """Until that many more jobs have had a handler end, whoever ran them."""
        before = len(self.ledger.read().done)
        self._wait(lambda: len(self.ledger.read().done) >= before + count, f"{count} more jobs")

    def work_by(self, program: Program, count: int) -> None:
        """Until children of a replica have ended that many more handlers."""

        def done() -> int:
            pids = program.pids()
            return sum(run.how is not None and run.pid in pids for run in self.ledger.read().executions.values())

        before = done()
        self._wait(lambda: done() >= before + count, f"{count} more jobs by one replica")

    def accept(self, client: Client, count: int) -> None:
        """Until an application has been given that many more answers."""
        before = len(client.answers())
        self._wait(lambda: len(client.answers()) >= before + count, f"{count} more answers")

    def quiesce(self) -> None:
        """Until every job has ended; the clients have stopped."""
        self._wait(lambda: self.lab.count("JobsHot") == 0, "the end of every job")

    def _wait(self, condition: Any, what: str) -> None:
        def holds() -> bool:
            for client in self.clients:
                client.answers()
            return bool(condition())

        try:
            wait_until(holds, what, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tails()}") from None

    # ── the account ───────────────────────────────────────────────────────────────────────────────────────────────────
    def finish(self) -> Verdict:
        """Everything ends; then every job is accounted for, and nobody had anything to complain about."""
        self.stop_clients()
        self.quiesce()
        self.drain()
        self.lab.check_invariants()
        verdict = judge(self.evidence())
        faults = [*verdict.faults, *self.surprises(), *self.complaints()]
        shown = "\n  ".join(faults[:25])
        assert not faults, f"{len(faults)} rules broken\n  {shown}\n{self.tails()}"
        return verdict

    def complaints(self) -> list[str]:
        """Warnings and errors that a worker logged."""
        return [
            f"replica {number} logged {event}"
            for number, program in enumerate(self.programs)
            for event in program.events()
            if is_complaint(event)
        ]

    def evidence(self) -> Evidence:
        """What the chaos suite's verifier judges by."""
        lines = [line for client in self.clients for line in client.answers()]
        offers = [line for line in lines if "cancel" not in line]
        standings: dict[str, list[Standing]] = {}
        for pillar, table in PILLARS.items():
            for row in self.lab.rows(table):
                standings.setdefault(row["Id"], []).append(Standing(pillar=Pillar(pillar), row=row))
        sqlite = self.lab.kind == "sqlite"
        ahead = 0 if sqlite else round((open_store(self.options).now().timestamp() - time.time()) * 1000)
        return Evidence(
            accepted={line["id"]: _job(line) for line in offers if line["created"]},
            answered={f"offer {number}": line["id"] for number, line in enumerate(offers) if not line["created"]},
            cancels={line["cancel"]: line["answer"] for line in lines if "cancel" in line},
            standings=standings,
            attempts=self.lab.rows("JobAttempts"),
            workers={row["WorkerId"]: row for row in self.lab.rows("Workers")},
            executions=dict(self.ledger.read().executions),
            deaths=self.deaths(),
            wall_minus_mono_ms=round((time.time_ns() - time.monotonic_ns()) / 1e6),
            database_minus_host_ms=ahead,
            rules=Rules() if sqlite else Rules(slack_ms=100, stamp_ms=5_000),
        )

    @staticmethod
    def _path(program: Path) -> str:
        """The application, and the library of a tree before any other."""
        return os.pathsep.join([str(CHAOS_PROGRAMS), str(program)])


def is_complaint(event: Event) -> bool:
    """Whether a line of a worker's log tells of something that should not have been."""
    return event.get("level") in ("warning", "error", "critical") and event["event"] not in ON_PURPOSE


def _job(line: dict[str, Any]) -> Job:
    scope = {"active": KeyScope.ACTIVE, "retained": KeyScope.RETAINED, None: KeyScope.ACTIVE}[line["scope"]]
    new = NewJob(
        id=line["id"],
        queue=line["queue"],
        type_key=f"chaos.{line['kind']}",
        payload=msgspec.json.encode(line["payload"]).decode(),
        delay_ms=line["delay_ms"],
        idempotency_key=line["key"],
        key_scope=scope,
    )
    return Job(new=new, kind=line["kind"], key=line["key"])


__all__ = ["BOOT", "CHAOS_PROGRAMS", "Client", "Deployment", "is_complaint"]
