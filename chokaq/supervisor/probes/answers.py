"""What the paths answer: facts from shared memory and from the database, judged, in words.

* `/livez`: the supervisor and its board alone. A database that is away changes nothing.
* `/readyz`: whether this worker can take work. What its children say of the database counts; the database itself is not waited for.
* `/healthz`: everything. Waits for the database for `probes.database_timeout` at most.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from chokaq.config.settings import ProbesSettings
from chokaq.observe.health import (
    Check,
    Health,
    Part,
    judge_database,
    judge_lag,
    judge_loops,
    judge_maintenance,
    judge_phase,
    judge_reach,
    judge_schema,
    judge_supervisor,
    judge_workers,
    together,
    worst,
)
from chokaq.supervisor.probes.facts import CrewFacts
from chokaq.supervisor.probes.server import Reply, Route, json_reply
from chokaq.supervisor.probes.watcher import Known, Watcher

LIVE, READY, HEALTH = "/livez", "/readyz", "/healthz"


class Answers:
    """The three probes of one worker."""

    def __init__(
        self, settings: ProbesSettings, read_crew: Callable[[], CrewFacts], watchers: Mapping[str, Watcher]
    ) -> None:
        """`read_crew`: the worker as it stands now; waits for nobody. `watchers`: of its databases, by their names."""
        self._settings = settings
        self._read_crew = read_crew
        self._watchers = watchers

    @property
    def routes(self) -> dict[str, Route]:
        """By path."""
        return {LIVE: self.live, READY: self.ready, HEALTH: self.health}

    def live(self) -> Reply:
        """200 while the supervisor does its work; 503: the whole worker has to be started anew."""
        crew, took = self._look()
        return _reply(_taking(took, [self._supervisor(crew)]))

    def ready(self) -> Reply:
        """200 while this worker can take work of each of its queues."""
        known = self._ask(0.0)
        crew, took = self._look()
        return _reply(
            [*_taking(took, self._readiness(crew)), _of_databases(known, lambda one: judge_schema(one.schema))]
        )

    def health(self) -> Reply:
        """200 when nothing is unhealthy."""
        own = self._settings
        known = self._ask(own.database_timeout)
        crew, took = self._look()
        of_crew = [
            *self._readiness(crew),
            judge_loops(crew.queues, own.loop_stalled),
        ]
        if crew.maintenance:
            of_crew.append(together({child.name: judge_maintenance(child) for child in crew.maintenance}))
        judges: list[Callable[[Known], Check]] = [
            lambda one: judge_database(one.database, own.database_timeout),
            lambda one: judge_schema(one.schema),
            lambda one: judge_lag(one.lag, own.lag_degraded, own.lag_unhealthy, own.lag_exempt),
        ]
        return _reply([*_taking(took, of_crew), *(_of_databases(known, judge) for judge in judges)])

    def _ask(self, patience: float) -> dict[str, Known]:
        """What is known of every database; they are asked at once, and waited for `patience` seconds together."""
        until = time.monotonic() + patience
        if patience > 0:
            for watcher in self._watchers.values():
                watcher.look(0.0)
        return {name: watcher.look(max(0.0, until - time.monotonic())) for name, watcher in self._watchers.items()}

    def _look(self) -> tuple[CrewFacts, float]:
        """The worker, and how many seconds it took to read it."""
        began = time.monotonic()
        crew = self._read_crew()
        return crew, time.monotonic() - began

    def _supervisor(self, crew: CrewFacts) -> Check:
        return judge_supervisor(crew.silent, self._settings.supervisor_timeout)

    def _readiness(self, crew: CrewFacts) -> list[Check]:
        limit = self._settings.heartbeat_timeout
        checks = [self._supervisor(crew), judge_phase(crew.phase)]
        # One that stops has told its children to leave already; one that has not said anything has none that we know of.
        if crew.phase not in (None, "stopping"):
            checks += [judge_workers(crew.queues, limit), judge_reach(crew.queues, limit)]
        return checks


def _taking(took: float, checks: Iterable[Check]) -> list[Check]:
    return [msgspec.structs.replace(check, took=took) for check in checks]


def _of_databases(known: Mapping[str, Known], judge: Callable[[Known], Check]) -> Check:
    return together(
        {
            name: msgspec.structs.replace(judge(one), took=one.database.took, age=one.database.age)
            for name, one in known.items()
        }
    )


def _reply(checks: list[Check]) -> Reply:
    status = worst(checks)
    code = HTTPStatus.SERVICE_UNAVAILABLE if status is Health.UNHEALTHY else HTTPStatus.OK
    return json_reply(code, {"status": status, "checks": {check.name: _shown(check) for check in checks}})


def _shown(check: Check) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": check.status, "says": check.says}
    if check.seconds is not None:
        shown["seconds"] = round(check.seconds, 3)
    if check.limits:
        shown["limits_seconds"] = check.limits
    if check.parts:
        shown["parts"] = {part.name: _shown_part(part) for part in check.parts}
    if check.took is not None:
        shown["took_ms"] = round(check.took * 1000, 3)
    if check.age is not None:
        shown["age_seconds"] = round(max(0.0, check.age), 3)
    return shown


def _shown_part(part: Part) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": part.status, "says": part.says}
    if part.seconds is not None:
        shown["seconds"] = round(part.seconds, 3)
    return shown
