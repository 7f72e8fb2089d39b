"""Completes settings with what the application registers, without importing it into this process."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from chokaq.config.describe import ApplicationError, describe_app
from chokaq.config.errors import ConfigError, Problem
from chokaq.config.load import load_settings
from chokaq.config.policies import check_policy
from chokaq.config.settings import Policy, QueueSettings, Settings

if TYPE_CHECKING:
    from chokaq.config.application import AppFacts


def settings_for_app(settings: Settings, app: Any) -> Settings:
    """The settings with the queues of the application's registry, when the YAML names no queues; else unchanged."""
    from chokaq.config.application import facts_of

    return settings if settings.queues else _with_queues(settings, facts_of(app).queues)


def load_worker_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """As `load_settings`, ready for a worker: `app` is set, every queue to serve is named, and policies given in code are known.

    With an empty `queues:` these are the queues the application uses. $CHOKAQ_QUEUES (names, comma-separated) narrows them.
    Raises ConfigError; ApplicationError, one kind of it, when the application is to blame.
    """
    settings = read_worker_settings(path, environ)
    return complete(settings, describe_app(settings), environ)


def read_worker_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The part of `load_worker_settings` that needs no application: `app` is set. Raises ConfigError."""
    settings = load_settings(path, environ)
    if settings.app is None:
        message = (
            "is not set; a worker needs it: package.module:attribute of the ChokaQ object (in the YAML, or $CHOKAQ_APP)"
        )
        raise ConfigError([Problem("app", message)], _source(settings))
    return settings


def complete(settings: Settings, facts: "AppFacts", environ: Mapping[str, str] | None = None) -> Settings:
    """The other part: queues and policies of the application, as it was described. Raises ConfigError."""
    settings = with_policies(settings, facts)
    if not settings.queues:
        settings = _with_queues(settings, facts.queues)
        if not settings.queues:
            message = f"{settings.app} registers no job and no pipe, and the YAML names no queue: nothing to serve"
            raise ConfigError([Problem("queues", message)], _source(settings))
    return _narrowed(settings, (os.environ if environ is None else environ).get("CHOKAQ_QUEUES", ""))


def with_policies(settings: Settings, facts: "AppFacts") -> Settings:
    """The settings with the policies that the application's code gives its job types. Raises ApplicationError."""
    for type_key, fields in facts.policies.items():
        try:
            msgspec.convert(fields, Policy)
            check_policy(fields)
        except (msgspec.ValidationError, ValueError) as error:
            message = f"the policy of the job type {type_key} is wrong: {error}"
            raise ApplicationError([Problem("app", message)], _source(settings)) from None
    return msgspec.structs.replace(settings, registered=facts.policies)


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
