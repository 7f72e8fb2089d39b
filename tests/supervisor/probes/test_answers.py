"""What the three paths answer, and to what they are blind."""

import threading
import time
from typing import Any

import orjson
import pytest

from chokaq.config.settings import ProbesSettings
from chokaq.observe.facts import ChildFacts, QueueFacts
from chokaq.store.errors import StoreUnavailable
from chokaq.store.probing import QueueLag, StoreHealth
from chokaq.supervisor.probes.answers import Answers
from chokaq.supervisor.probes.facts import CrewFacts
from chokaq.supervisor.probes.server import Reply
from chokaq.supervisor.probes.watcher import Watcher

LIVE = ChildFacts(name="emails#0", ready=True, silent=0.1)
MAINTENANCE = ChildFacts(name="main", ready=True, silent=0.1)
CREW = CrewFacts(0.3, "running", [QueueFacts("emails", [LIVE])], [MAINTENANCE])
PAUSED = QueueLag(name="emails", paused=True, active=True, oldest_due_ms=3_600_000)
LATE = QueueLag(name="emails", paused=False, active=True, oldest_due_ms=7_000)
FINE = StoreHealth(version=4, needed=4, fits=True, queues=[])


class Case:
    """A worker and a database that are as the test wants them."""

    def __init__(self, crew: CrewFacts = CREW, health: StoreHealth | Exception = FINE, **settings: Any) -> None:
        self.crew, self.health = crew, health
        self.flowing = threading.Event()
        self.flowing.set()
        self.watcher = Watcher(lambda: self, lambda: ["emails"])  # type: ignore[arg-type,return-value]
        self.answers = Answers(ProbesSettings(**settings), lambda: self.crew, {"main": self.watcher})

    def read_health(self, _queues: object) -> StoreHealth:
        """What the database says."""
        assert self.flowing.wait(10)
        if isinstance(self.health, Exception):
            raise self.health
        return self.health

    def close(self) -> None:
        """Nothing to close."""

    def know(self) -> None:
        """Wait until the database has been asked."""
        self.watcher.look(10)


def read(reply: Reply) -> tuple[int, dict[str, Any]]:
    """Status and document."""
    return reply.status, orjson.loads(reply.body)


def gone(phase: str | None = "running", **child: Any) -> CrewFacts:
    """The same worker with another child."""
    return CREW._replace(phase=phase, queues=[QueueFacts("emails", [ChildFacts(name="emails#0", **child)])])


def test_a_worker_that_is_well_says_so_everywhere() -> None:
    case = Case()
    case.know()
    status, live = read(case.answers.live())
    assert (status, live["status"], list(live["checks"])) == (200, "healthy", ["supervisor"])
    status, ready = read(case.answers.ready())
    assert (status, list(ready["checks"])) == (200, ["supervisor", "phase", "workers", "reach", "schema"])
    status, health = read(case.answers.health())
    assert (status, health["status"]) == (200, "healthy")
    assert list(health["checks"]) == [
        "supervisor", "phase", "workers", "reach", "loops", "maintenance", "database", "schema", "queue_lag",
    ]  # fmt: skip
    for check in health["checks"].values():
        assert check["status"] == "healthy"
        assert check["says"]
        assert check["took_ms"] >= 0
    assert health["checks"]["queue_lag"]["limits_seconds"] == {"degraded": 5.0, "unhealthy": 10.0}
    assert health["checks"]["workers"]["limits_seconds"] == {"unhealthy": 30.0}
    assert health["checks"]["database"]["age_seconds"] >= 0


@pytest.mark.parametrize(
    ("crew", "live", "ready"),
    [
        (CREW._replace(silent=16.0), 503, 503),
        (CREW._replace(silent=None), 503, 503),
        (gone("stopping", here=False), 200, 503),
        (gone(None, here=False), 200, 503),
        (gone(here=False), 200, 503),
        (gone(), 200, 503),
        (gone(ready=True, silent=31.0), 200, 503),
        (gone(ready=True, silent=0.1, reaches_store=False), 200, 503),
        (gone("starting", ready=True, silent=6.0), 200, 200),
        (CREW._replace(maintenance=[ChildFacts(name="main", here=False)]), 200, 200),
    ],
)
def test_what_is_a_matter_of_life_and_what_of_readiness(crew: CrewFacts, live: int, ready: int) -> None:
    case = Case(crew)
    assert (case.answers.live().status, case.answers.ready().status) == (live, ready)


@pytest.mark.parametrize(
    ("health", "live", "ready", "well", "status"),
    [
        (StoreUnavailable("away"), 200, 200, 503, "unhealthy"),
        (StoreHealth(version=5, needed=4, fits=False, queues=[]), 200, 503, 503, "unhealthy"),
        (StoreHealth(version=4, needed=4, fits=True, queues=[PAUSED]), 200, 200, 200, "healthy"),
        (StoreHealth(version=4, needed=4, fits=True, queues=[LATE]), 200, 200, 200, "degraded"),
    ],
)
def test_what_the_database_decides(
    health: StoreHealth | Exception, live: int, ready: int, well: int, status: str
) -> None:
    """Whether it is reached is the children's word, for readiness; /healthz asks for itself."""
    case = Case(health=health)
    case.know()
    found = case.answers.health()
    assert (case.answers.live().status, case.answers.ready().status, found.status) == (live, ready, well)
    assert read(found)[1]["status"] == status


def test_while_the_database_hangs_two_paths_wait_for_nobody_and_the_third_not_for_long() -> None:
    case = Case(database_timeout=0.05)
    case.flowing.clear()
    try:
        assert case.answers.ready().status == 200
        assert case.answers.live().status == 200
        status, health = read(case.answers.health())
        assert (status, health["checks"]["database"]["status"]) == (503, "unhealthy")
        assert health["checks"]["queue_lag"]["status"] == "degraded"
    finally:
        case.flowing.set()


def test_several_databases_are_waited_for_together_and_told_apart() -> None:
    main, hanging, archive = Case(), Case(), Case()
    hanging.flowing.clear()
    watchers = {"main": main.watcher, "hanging": hanging.watcher, "archive": archive.watcher}
    answers = Answers(ProbesSettings(database_timeout=0.3), lambda: CREW, watchers)
    archive.know()
    try:
        began = time.monotonic()
        status, health = read(answers.health())
        # One that hangs uses up the time of all, and costs no other its answer.
        assert time.monotonic() - began >= 0.3
        assert status == 503
        parts = health["checks"]["database"]["parts"]
        assert {name: part["status"] for name, part in parts.items()} == {
            "main": "healthy", "hanging": "unhealthy", "archive": "healthy",
        }  # fmt: skip
        assert health["checks"]["database"]["says"].startswith("hanging: ")
        assert answers.ready().status == 200
    finally:
        hanging.flowing.set()


def test_no_address_and_no_text_of_an_error_is_told() -> None:
    case = Case(health=StoreUnavailable("mssql://sa@db.internal/jobs: login failed for sa"))
    case.know()
    body = case.answers.health().body
    assert b"internal" not in body
    assert b"login" not in body


def test_what_is_exempt_or_drawn_elsewhere_is_judged_so() -> None:
    case = Case(health=StoreHealth(version=4, needed=4, fits=True, queues=[LATE]), lag_exempt=("emails",))
    case.know()
    assert read(case.answers.health())[1]["status"] == "healthy"
    case = Case(health=StoreHealth(version=4, needed=4, fits=True, queues=[LATE]), lag_degraded=1.0, lag_unhealthy=2.0)
    case.know()
    assert read(case.answers.health())[1]["checks"]["queue_lag"]["status"] == "unhealthy"
