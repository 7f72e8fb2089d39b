"""What a story needs: a Deck as a program of its own over the store under test, and a worker when jobs are to run."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from argon2 import PasswordHasher
from playwright.sync_api import Locator, Page, expect

from chokaq.lifecycle.states import JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import NewJob
from tests.support.ids import new_id
from tests.support.lab import Lab
from tests.support.polling import wait_until
from tests.support.processes import ROOT
from tests.support.proxy import Proxy
from tests.support.supervised import Program

PASSWORD = "correct horse battery staple"
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 60_000
"""Milliseconds until a page has to show something: the machine may be busy."""
STARTED = 90.0
"""Seconds until a program has to be ready, for the same reason."""

expect.set_options(timeout=PATIENCE)


class House:
    """The programs of one story. What they need stands in `folder`."""

    def __init__(self, folder: Path, options: DatabaseSettings, session: Session, lab: Lab) -> None:
        self.folder, self.session, self.lab = folder, session, lab
        self.mended = folder / "mended"
        self._options = options
        self._programs: list[Program] = []
        self._proxy: Proxy | None = None
        self.url = ""

    # ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def serve(self, *, users: bool = False, name: str = "deck") -> str:
        """Start The Deck; its address. `users`: anna and ben are operators, vera is a viewer; else whoever comes is an operator.

        `name`: another one for a second process, which signs with the same secret.
        """
        deck: dict[str, object] = {"port": 0, "secret": "secret-of-a-fleet-of-two-0123456789"}
        if users:
            hashed = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
            roles = {"anna": "operator", "ben": "operator", "vera": "viewer"}
            deck["users"] = {name: {"password_hash": hashed, "role": role} for name, role in roles.items()}
        program = self._start("deck", name=name, deck=deck)
        self.url = str(program.wait("deck_ready", timeout=STARTED)[0]["url"]).rstrip("/")
        return self.url

    def mount(self) -> str:
        """Start an application that carries The Deck below a path; its address."""
        program = self._start("mounted", script="deck_mounted.py")
        self.url = str(program.wait("deck_ready", timeout=STARTED)[0]["url"]).rstrip("/")
        return self.url

    def work(self) -> None:
        """Start a worker, and wait until it takes jobs."""
        program = self._start("worker")
        program.wait("child_ready", 2, timeout=STARTED)

    def end(self) -> None:
        """End what was started."""
        for program in self._programs:
            program.destroy()
        if self._proxy is not None:
            self._proxy.close()

    def log(self) -> str:
        """The ends of the logs."""
        return "\n".join(program.tail() for program in self._programs)

    def _start(self, command: str, script: str | None = None, name: str | None = None, **more: object) -> Program:
        folder = self.folder / (name or command)
        folder.mkdir()
        config = folder / "chokaq.yaml"
        # JSON is YAML.
        config.write_text(json.dumps({**self._config(), **more}))
        arguments = ["-m", "chokaq", command, "--config", str(config), "--log-format", "json"]
        environ = {"PYTHONPATH": f"{ROOT}:{PROGRAMS}", "SHOP_MENDED": str(self.mended)}
        if script is not None:
            arguments = [str(PROGRAMS / script)]
            environ["CHOKAQ_CONFIG"] = str(config)
        program = Program(arguments, folder, environ)
        self._programs.append(program)
        return program

    def _config(self) -> dict[str, Any]:
        return {
            "app": "deck_shop:app",
            "database": {"url": self._options.url, "schema": self._options.schema},
            "queues": {
                "emails": {"max_workers": 4, "heartbeat": "1s"},
                "reports": {"max_workers": 2, "heartbeat": "1s"},
            },
            "supervisor": {"shutdown_grace": "6s"},
        }

    # ── the database goes away ────────────────────────────────────────────────────────────────────────────────────────
    def through_a_proxy(self) -> None:
        """From here on programs reach a server through something that can be cut; call it before they start."""
        if self._options.url.startswith("mssql:"):
            parts = urlsplit(self._options.url)
            self._proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 1433)
            near = re.sub(r"@[^/]+/", f"@127.0.0.1:{self._proxy.port}/", self._options.url)
            self._options = msgspec.structs.replace(self._options, url=near)

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """While inside, no question to the database is answered."""
        if self._proxy is not None:
            self._proxy.refuse()
            self._proxy.cut()
            try:
                yield
            finally:
                self._proxy.refuse(False)
            return
        # An embedded store has no line to cut: its question of what changed finds nothing to read.
        self.lab.execute("ALTER TABLE {Workers} RENAME TO WorkersAway")
        try:
            yield
        finally:
            self.lab.execute("ALTER TABLE WorkersAway RENAME TO Workers")

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    def enqueue(self, type_key: str, count: int = 1, **payload: object) -> list[str]:
        """Enqueue jobs; their ids in order."""
        queue = {"email": "emails", "report": "reports"}[type_key.partition(".")[0]]
        text = json.dumps(payload)
        jobs = [NewJob(id=new_id(), queue=queue, type_key=type_key, payload=text) for _ in range(count)]
        self.session.enqueue_jobs(jobs)
        return [job.id for job in jobs]

    def wait_for(self, job_ids: list[str], status: JobStatus) -> None:
        """Until all of them are in that state."""

        def there() -> bool:
            return set(self.session.get_statuses(job_ids)) == {status}

        try:
            wait_until(there, f"{status.label} for {len(job_ids)} jobs", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}; the logs:\n{self.log()}") from None


def sign_in(page: Page, house: House, name: str, password: str = PASSWORD) -> None:
    """Fill in the form that stands before every page."""
    page.goto(house.url)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def heading(page: Page, text: str) -> None:
    """The page with this heading is shown."""
    expect(page.get_by_role("heading", level=1, name=text)).to_be_visible()


def row(page: Page, text: str) -> Locator:
    """The row of a table that says this."""
    return page.locator("tbody tr").filter(has_text=text)


def menu(page: Page, name: str) -> Locator:
    """An entry of the navigation."""
    return page.get_by_label("Pages").get_by_role("link", name=name, exact=True)
