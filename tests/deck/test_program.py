"""Real processes: `chokaq deck` alone, beside a worker's children, and inside another application."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chokaq.deck import program
from tests.deck.conftest import TOKEN
from tests.support.processes import ROOT
from tests.support.supervised import Program, alive

pytestmark = pytest.mark.processes

APP = """
import msgspec
from chokaq import ChokaQ

app = ChokaQ()

@app.job("email.send.v1", queue="mail")
class SendEmail(msgspec.Struct):
    to: str

@app.handler(SendEmail)
async def send(job: SendEmail) -> None: ...
"""


def write(folder: Path, deck: str, more: str = "") -> None:
    """An application with its configuration."""
    (folder / "deck_app.py").write_text(APP)
    (folder / "chokaq.yaml").write_text(
        f"database: sqlite:///chokaq.db\nlog_format: json\nlog_level: info\ndeck: {deck}\n{more}"
    )


Start = list[Program]


@pytest.fixture
def started() -> Iterator[Start]:
    """Programs that end with their test."""
    programs: Start = []
    yield programs
    for one in programs:
        one.destroy()


def url_of(deck: Program, count: int = 1) -> str:
    """Where it says it listens."""
    return str(deck.wait("deck_ready", count)[-1]["url"])


@pytest.mark.timeout(180)
def test_the_deck_serves_alone_until_term(tmp_path: Path, started: Start) -> None:
    write(tmp_path, "{port: 0}", "app: deck_app:app\n")
    started.append(deck := Program(["-m", "chokaq", "deck"], tmp_path))
    url = url_of(deck)

    assert httpx.get(f"{url}api/overview").status_code == 200
    page = httpx.get(url, headers={"accept": "text/html"})
    assert page.status_code == 200
    loaded = set(re.findall(r'(?:src|href)="([^"#]+)"', page.text))
    assert loaded
    assert not [address for address in loaded if address.startswith(("http:", "https:", "//"))]
    assert deck.events("deck_open")
    assert deck.end() == 0


@pytest.mark.timeout(180)
def test_beyond_loopback_it_needs_authentication(tmp_path: Path, started: Start) -> None:
    write(tmp_path, "{port: 0}")
    started.append(refused := Program(["-m", "chokaq", "deck", "--host", "0.0.0.0"], tmp_path))

    assert refused.exit_code() == 3
    assert "deck.host" in refused.tail()
    assert "nobody would have to say who they are" in refused.tail()


@pytest.mark.timeout(240)
def test_a_worker_outlives_its_web_process_and_replaces_it(tmp_path: Path, started: Start) -> None:
    write(
        tmp_path,
        f"{{enabled: true, port: 0, token: {TOKEN}}}",
        "app: deck_app:app\nqueues: {mail: {}}\nsupervisor: {respawn_min: 50ms}\n",
    )
    started.append(worker := Program(["-m", "chokaq", "worker"], tmp_path))
    worker.wait("supervisor_ready", timeout=60)
    first = url_of(worker)
    headers = {"authorization": f"Bearer {TOKEN}"}
    rows = httpx.get(f"{first}api/workers", headers=headers).json()
    assert {row["worker"]["queue"] for row in rows} == {"mail", ""}
    children = [event["pid"] for event in worker.events("child_forked")]

    os.kill(worker.events("web_forked")[-1]["pid"], signal.SIGKILL)
    worker.wait("web_died", signal=9)
    second = url_of(worker, 2)

    assert httpx.get(f"{second}api/queues", headers=headers).status_code == 200
    assert [event["pid"] for event in worker.events("child_forked")] == children
    assert all(alive(pid) for pid in children)
    assert not worker.events("supervisor_not_ready")
    web = worker.events("web_forked")[-1]["pid"]
    assert worker.end() == 0
    worker.until(lambda: not alive(web), "the end of the web process")


@pytest.mark.timeout(240)
def test_a_deck_that_cannot_be_served_leaves_a_worker_that_works(tmp_path: Path, started: Start) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    with taken:
        write(
            tmp_path,
            f"{{enabled: true, port: {taken.getsockname()[1]}}}",
            "app: deck_app:app\nqueues: {mail: {}}\nsupervisor: {respawn_min: 50ms, respawn_max: 200ms}\n",
        )
        started.append(worker := Program(["-m", "chokaq", "worker"], tmp_path))
        worker.wait("web_died", 2, timeout=90)
        worker.wait("supervisor_ready", timeout=60)

        assert "The Deck cannot be served" in worker.tail()
        assert worker.end() == 0


MOUNTED = """
import contextlib, sys
from pathlib import Path
import uvicorn
from fastapi import FastAPI
from chokaq import ChokaQ

begun = []

@contextlib.asynccontextmanager
async def lifespan(whole):
    begun.append("yes")
    yield

web = FastAPI(lifespan=lifespan)
app = ChokaQ(Path(sys.argv[1]))

@web.get("/own")
def own():
    return begun

app.mount_deck(web, "/ops/deck")

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        Path("port").write_text(str(self.servers[0].sockets[0].getsockname()[1]))

Server(uvicorn.Config(web, port=0, log_level="warning")).run()
"""


@pytest.mark.timeout(180)
def test_the_deck_stands_inside_another_application(tmp_path: Path, started: Start) -> None:
    write(tmp_path, "{}")
    (tmp_path / "mounted.py").write_text(MOUNTED)
    started.append(web := Program(["mounted.py", "chokaq.yaml"], tmp_path))
    port = tmp_path / "port"
    web.until(lambda: port.exists() and bool(port.read_text()), "its port", 60)
    url = f"http://127.0.0.1:{port.read_text()}"

    assert httpx.get(f"{url}/own").json() == ["yes"]
    assert httpx.get(f"{url}/ops/deck/api/overview").status_code == 200
    page = httpx.get(f"{url}/ops/deck/", headers={"accept": "text/html"})
    assert page.status_code == 200
    scripts = re.findall(r'src="([^"]+)"', page.text)
    assert scripts
    assert all(httpx.get(f"{url}{script}").status_code == 200 for script in scripts if script.startswith("/"))
    assert all(script.startswith("/ops/deck/") for script in scripts)


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None if name == "nicegui" else object())

    with pytest.raises(program.DeckNotInstalled, match=r"pip install 'chokaq\[deck\]' \(missing: nicegui\)"):
        program.require_extra()


NO_EXTRA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("nicegui", "fastapi", "argon2", "itsdangerous", "uvicorn", "starlette"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import chokaq, chokaq.cli.program, chokaq.supervisor.spawn
chokaq.supervisor.spawn.load_entries()
chokaq.cli.program.build()
import importlib.util
importlib.util.find_spec = lambda name, package=None: None
from chokaq.cli import main
sys.argv = ["chokaq", "deck"]
main()
"""


def test_chokaq_works_without_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_EXTRA], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert "pip install 'chokaq[deck]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_password_is_hashed_at_the_prompt(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from chokaq.cli.program import build
    from chokaq.deck.passwords import is_password

    done = CliRunner().invoke(build(), ["deck", "--hash-password"], input="secret\nsecret\n")

    assert done.exit_code == 0
    assert is_password("secret", done.stdout.strip().splitlines()[-1])
