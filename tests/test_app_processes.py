"""A client in processes that fork after it was used, and at the end of an interpreter."""

import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FORKS = """
import asyncio, os, sys
import msgspec
from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.store.options import DatabaseSettings

app = ChokaQ(Settings(database=DatabaseSettings(url="sqlite:///" + sys.argv[1])))

@app.job("mail.v1", queue="emails")
class Mail(msgspec.Struct):
    to: str

async def several(name):
    await asyncio.gather(*(app.enqueue(Mail(name)) for _ in range(20)))

app.enqueue_sync(Mail("parent before"))
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            app.enqueue_sync(Mail(f"child {number}"))
        asyncio.run(several(f"child {number}"))
        sys.exit(0)
    children.append(child)
asyncio.run(several("parent"))
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
app.enqueue_sync(Mail("parent after"))
print("done", app.get_sync(app.enqueue_sync(Mail("last")).id).payload)
"""

BUSY_FORKS = """
import os, sys, threading
from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.store.options import DatabaseSettings

app = ChokaQ(Settings(database=DatabaseSettings(url="sqlite:///" + sys.argv[1])))
app.job("note.v1", dict)
stop = threading.Event()

def busy():
    while not stop.is_set():
        app.enqueue_sync("note.v1", {})

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
app.enqueue_sync("note.v1", {})
codes = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        app.enqueue_sync("note.v1", {"child": True})
        sys.exit(0)
    codes.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads:
    thread.join()
print(codes)
"""

UNDER_WAY = """
import sys, threading
from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.store.options import DatabaseSettings

app = ChokaQ(Settings(database=DatabaseSettings(url="sqlite:///" + sys.argv[1])))
app.job("note.v1", dict)
stop = threading.Event()

def forever():
    while not stop.is_set():
        app.enqueue_sync("note.v1", {})

threading.Thread(target=forever, daemon=True).start()
for _ in range(20):
    app.enqueue_sync("note.v1", {})
print("done")
"""


def run(program: str, path: Path) -> str:
    """Its output. Python 3.12 and later deprecate to fork with threads; that it works all the same is what is tested here."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.processes
def test_a_forked_child_enqueues_on_its_own_connection(tmp_path: Path) -> None:
    """C22: what was opened before the fork is left to the parent."""
    path = tmp_path / "forks.db"
    assert run(FORKS, path) == 'done {"to":"last"}\n'
    connection = sqlite3.connect(path)
    try:
        found = dict(connection.execute("SELECT Payload ->> 'to', count(DISTINCT Id) FROM JobsHot GROUP BY 1"))
    finally:
        connection.close()
    assert found == {
        "parent before": 1,
        "parent": 20,
        "child 0": 30,
        "child 1": 30,
        "child 2": 30,
        "parent after": 1,
        "last": 1,
    }


@pytest.mark.processes
def test_a_fork_in_the_middle_of_calls_harms_neither_side(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    assert run(BUSY_FORKS, path) == f"{[0] * 10}\n"
    connection = sqlite3.connect(path)
    try:
        (count,) = connection.execute("SELECT count(*) FROM JobsHot WHERE Payload LIKE '%child%'").fetchone()
    finally:
        connection.close()
    assert count == 10


@pytest.mark.processes
def test_an_interpreter_ends_although_enqueues_are_under_way(tmp_path: Path) -> None:
    assert run(UNDER_WAY, tmp_path / "end.db") == "done\n"
