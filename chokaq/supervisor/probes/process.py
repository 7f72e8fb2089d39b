"""The process that answers probes, from its fork to its exit code: no user code, none of The Deck's packages."""

import os
import signal
import socket
import threading
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path

import msgspec

from chokaq.config.settings import Settings
from chokaq.observe.log import tell_repeats
from chokaq.observe.metrics import directory
from chokaq.observe.metrics.render import render
from chokaq.operations.connect import find_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.supervisor.board import Board
from chokaq.supervisor.bulletin import Bulletin
from chokaq.supervisor.probes.answers import Answers
from chokaq.supervisor.probes.facts import CrewFacts, read_crew
from chokaq.supervisor.probes.server import ProbeServer, Reply, Route
from chokaq.supervisor.probes.watcher import Watcher
from chokaq.worker.boot import become_child
from chokaq.worker.status import ExitCode

TITLE = "chokaq: probes"
CALL = 5.0
"""Seconds after which a question to the database is given up, however long the settings let others wait."""
REPEATS = 5.0
"""Seconds between two looks for repeated log lines that are to be told of."""
FAREWELL = 2.0
"""Seconds that those who have asked already have to take their answer, when this process is told to leave."""


def run_probes(settings: Settings, board: Board, bulletin: Bulletin, listening: socket.socket, parent_pid: int) -> int:
    """Answer until TERM. Right after the fork, signals still blocked. Its death ends nobody: the supervisor forks another."""
    if not become_child(TITLE, parent_pid, lambda: os._exit(ExitCode.DONE)):
        return ExitCode.ORPHANED
    # Threads started from here on leave the signals to this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    if os.getppid() != parent_pid:
        return ExitCode.ORPHANED

    def crew() -> CrewFacts:
        return read_crew(bulletin, board, time.monotonic())

    watchers = {
        name: Watcher(
            partial(_session, settings.named_databases[name]),
            partial(list, [queue for queue in settings.queues if settings.database_name(queue) == name]),
            database=name if settings.several else None,
        )
        for name in dict.fromkeys(map(settings.database_name, settings.queues))
    }
    server = ProbeServer(listening, routes(Answers(settings.probes, crew, watchers)), bulletin.serve)
    serving = threading.Thread(target=server.serve_forever, name="chokaq-probes", daemon=True)
    serving.start()
    while signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, REPEATS) is None:
        tell_repeats()
    server.finish(FAREWELL)
    for watcher in watchers.values():
        watcher.close()
    tell_repeats(all_of_them=True)
    return ExitCode.DONE


def routes(answers: Answers) -> dict[str, Route]:
    """Everything the probe port answers, by path; any other path is answered with 404, `/metrics` too when nothing is counted."""
    figures = directory()
    return dict(answers.routes) if figures is None else {**answers.routes, "/metrics": partial(_metrics, figures)}


def _metrics(figures: Path) -> Reply:
    body, content_type = render(figures)
    return Reply(HTTPStatus.OK, content_type, body)


def _session(database: DatabaseSettings) -> Session:
    """A session for somebody who does not wait for long."""
    impatient = msgspec.structs.replace(
        database,
        connect_timeout=min(database.connect_timeout, CALL),
        command_timeout=min(database.command_timeout, CALL),
        lock_timeout=min(database.lock_timeout, CALL),
        retries=0,
    )
    return find_store(impatient).session()
