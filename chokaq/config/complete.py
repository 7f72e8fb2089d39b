"""Completes settings with what the application registers, without importing it into this process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from chokaq.config.errors import ConfigError, Problem
from chokaq.config.load import load_settings
from chokaq.config.settings import QueueSettings, Settings

if TYPE_CHECKING:
    from chokaq.config.application import AppFacts

DESCRIBE_SECONDS = 120.0
"""An application that takes longer to import than this is taken for one that hangs."""


def settings_for_app(settings: Settings, app: Any) -> Settings:
    """The settings with the queues of the application's registry, when the YAML names no queues; else unchanged."""
    from chokaq.config.application import facts_of

    return settings if settings.queues else _with_queues(settings, facts_of(app).queues)


def load_worker_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """As `load_settings`, ready for a worker: `app` is set, and every queue to serve is named.

    With an empty `queues:` these are the queues the application uses. $CHOKAQ_QUEUES (names, comma-separated) narrows them.
    Raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    settings = load_settings(path, environ)
    if settings.app is None:
        message = (
            "is not set; a worker needs it: package.module:attribute of the ChokaQ object (in the YAML, or $CHOKAQ_APP)"
        )
        raise ConfigError([Problem("app", message)], _source(settings))
    if not settings.queues:
        settings = _with_queues(settings, describe_app(settings).queues)
        if not settings.queues:
            message = f"{settings.app} registers no job and no pipe, and the YAML names no queue: nothing to serve"
            raise ConfigError([Problem("queues", message)], _source(settings))
    return _narrowed(settings, environ.get("CHOKAQ_QUEUES", ""))


def describe_app(settings: Settings) -> "AppFacts":
    """What the application registers, found out in a short-lived process. Raises ConfigError when it cannot be imported."""
    from chokaq.config.application import AppFacts

    assert settings.app is not None
    command = [sys.executable, "-m", "chokaq.config.application", settings.app]
    if settings.source is not None:
        command.append(str(settings.source.parent))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environ,
            timeout=DESCRIBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"importing {settings.app} took longer than {DESCRIBE_SECONDS:.0f} s"
        raise ConfigError([Problem("app", message)], _source(settings)) from None
    try:
        facts = msgspec.json.decode(done.stdout, type=AppFacts)
    except msgspec.DecodeError:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        message = f"importing {settings.app} ended the process with {ended}"
        raise ConfigError([Problem("app", message)], _source(settings)) from None
    if facts.error is not None:
        raise ConfigError([Problem("app", facts.error)], _source(settings))
    return facts


def _with_queues(settings: Settings, names: list[str]) -> Settings:
    return msgspec.structs.replace(settings, queues={name: settings.queue(name) for name in names})


def _narrowed(settings: Settings, wanted: str) -> Settings:
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if not names:
        return settings
    unknown = [name for name in names if name not in settings.queues]
    if unknown:
        message = f"names {', '.join(unknown)}; the queues here are {', '.join(sorted(settings.queues))}"
        raise ConfigError([Problem("$CHOKAQ_QUEUES", message)])
    chosen: dict[str, QueueSettings] = {name: settings.queues[name] for name in names}
    return msgspec.structs.replace(settings, queues=chosen)


def _source(settings: Settings) -> str | None:
    return None if settings.source is None else str(settings.source)
