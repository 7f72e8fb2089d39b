"""What a supervisor counts: its children, why they are replaced, whether it is ready. It keeps what dead processes had counted."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import structlog

from chokaq.config.settings import Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.observe.metrics import MetricsSettings, begin_process, begin_run, end_run
from chokaq.observe.metrics.recorder import Gauge, Recorder
from chokaq.observe.metrics.run import RunDirectory
from chokaq.supervisor.children import Child
from chokaq.supervisor.reaper import Exit
from chokaq.worker.status import ExitCode

log = structlog.get_logger("chokaq")

DRAINED = ("recycle", "reload", "rolling_restart")
"""Why the supervisor itself has a child replaced."""


class SupervisorTally:
    """The figures of one supervisor, and the run directory of its worker. Does nothing when nothing is counted."""

    def __init__(self) -> None:
        self._run: RunDirectory | None = None
        self._recorder: Recorder | None = None
        self._settings = MetricsSettings()
        self._shown: dict[str, tuple[Gauge, Gauge]] = {}

    def begin(self, settings: Settings) -> None:
        """Make the run directory; before the first fork."""
        self._settings = settings.metrics
        self._run = begin_run(settings.metrics)
        self._recorder = begin_process()
        if self._recorder is not None:
            self._ready = self._recorder.gauge("chokaq_ready")
            self._recorder.gauge("chokaq_build_info", *build_info(settings)).set(1)

    def reload(self, settings: Settings) -> None:
        """New budgets hold for the processes forked from now on; whether and where to count was decided at the start."""
        new, old = settings.metrics, self._settings
        if (new.enabled, new.directory) != (old.enabled, old.directory):
            log.warning(
                "metrics_need_restart", problem="metrics.enabled and metrics.directory are read when the worker starts"
            )
        self._settings = new
        if self._run is not None:
            self._run.settings = new

    def state(self, children: Mapping[str, tuple[int, int]], *, ready: bool) -> None:
        """Several times a second. `children`: by queue, how many are wanted and how many of them are ready."""
        if self._recorder is None:
            return
        self._ready.set(ready)
        for queue, figures in children.items():
            gauges = self._shown.get(queue)
            if gauges is None:
                wanted, live = (self._recorder.gauge("chokaq_children", queue, state) for state in ("wanted", "ready"))
                gauges = self._shown[queue] = wanted, live
            for gauge, figure in zip(gauges, figures, strict=True):
                gauge.set(figure)
        for queue in self._shown.keys() - children.keys():
            for gauge in self._shown.pop(queue):
                gauge.clear()

    def child_restarts(self, queue: str, cause: str) -> None:
        """A child has ended and is replaced."""
        if self._recorder is not None:
            self._recorder.add("chokaq_child_restarts_total", queue, cause)

    def service_restarts(self, process: str, cause: str) -> None:
        """One that is no child of a queue (maintenance, web, probes) has ended and is replaced."""
        if self._recorder is not None:
            self._recorder.add("chokaq_service_restarts_total", process, cause)

    def buried(self, pid: int) -> None:
        """A process has been reaped: what it has counted stays, what it showed is gone."""
        if self._run is not None:
            self._run.retire(pid)

    def close(self) -> None:
        """The program ends."""
        self._recorder = self._run = None
        end_run()


def restart_cause(child: Child, end: Exit, *, was_ready: bool) -> str:
    """Why a child of a queue is replaced."""
    if child.killed_for is DeathCause.LIMIT or child.drain_reason == "hard_limit":
        return "limit"
    if child.killed_for is DeathCause.CRASH:
        return "stall"
    drained = end.signal is None and end.code in set(ExitCode)
    if child.drain_reason in DRAINED and (drained or child.killed_for is not None):
        return child.drain_reason
    if not was_ready:
        return "boot"
    if end.code == ExitCode.RETIRED:
        return "retired"
    return "exit" if drained else "crash"


def build_info(settings: Settings) -> tuple[str, str, str]:
    """The label values of chokaq_build_info."""
    try:
        own = version("chokaq")
    except PackageNotFoundError:
        own = "0"
    return own, platform.python_version(), "sqlite" if settings.database.url.startswith("sqlite") else "sqlserver"
