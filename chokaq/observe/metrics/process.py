"""The figures of this process: which run directory it belongs to, and the recorder it counts with.

The supervisor makes the run directory before it forks; its children inherit it, and each makes a file of its own. What is counted
below the worker (errors of the store) finds its recorder here.
"""

import os
from pathlib import Path

import structlog

from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.run import RunDirectory
from chokaq.observe.metrics.sink import sql

_log = structlog.get_logger("chokaq")


class _Here:
    run: RunDirectory | None = None
    recorder: Recorder | None = None


def begin_run(settings: MetricsSettings) -> RunDirectory | None:
    """Make the run directory of this worker; None when metrics are switched off, or no folder can be written (that is logged)."""
    _forget()
    if settings.enabled:
        try:
            _Here.run = RunDirectory(settings)
        except OSError as error:
            _log.warning(
                "metrics_off", problem=f"no folder can be written: {error}", way_out="name one in metrics.directory"
            )
    return _Here.run


def begin_process() -> Recorder | None:
    """The recorder of this process from now on, after a fork as well; None when the worker counts nothing."""
    run = _Here.run
    recorder = None
    if run is not None:
        try:
            recorder = Recorder(run.open_file(), run.settings)
        except OSError as error:
            _log.warning("metrics_off", problem=f"no file can be made in {run.path}: {error}")
    _Here.recorder = sql.sink = recorder
    return recorder


def end_run() -> None:
    """Delete the run directory; in a child nothing is deleted, but nothing counts from here on."""
    run = _Here.run
    _forget()
    if run is not None:
        run.remove()


def _forked() -> None:
    """In a fresh child: what the parent counts with is the parent's, until `begin_process` makes a file of its own."""
    if _Here.recorder is not None:
        if sql.sink is _Here.recorder:
            sql.sink = None
        _Here.recorder = None


os.register_at_fork(after_in_child=_forked)


def _forget() -> None:
    _Here.run = _Here.recorder = sql.sink = None


def directory() -> Path | None:
    """The run directory of the worker this process belongs to; None outside of a worker that counts."""
    return None if _Here.run is None else _Here.run.path
