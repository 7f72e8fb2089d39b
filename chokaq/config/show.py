"""Settings as people read them: every option by its path, with its value in YAML and where it came from; no secrets."""

from typing import NamedTuple

import msgspec

from chokaq.config.document import path_text
from chokaq.config.load import Loaded
from chokaq.config.sections import (
    DATABASE,
    DECK,
    DECK_USER,
    ENVELOPE,
    IDEMPOTENCY,
    MAINTENANCE,
    METRICS,
    POLICY,
    PROBES,
    QUEUE,
    QUEUE_ALONE,
    SUPERVISOR,
    TOP,
    TRACING,
    Section,
)
from chokaq.config.settings import Settings
from chokaq.store.options import DatabaseSettings
from chokaq.store.url import redact

DEFAULT = "default"
HIDDEN = "***"


class Shown(NamedTuple):
    """One option in force."""

    path: str
    value: str
    """As YAML."""
    origin: str
    """`chokaq.yaml:7`, `$CHOKAQ_APP`, `default`; for what a queue inherits, the origin of the inherited value."""


def shown_settings(loaded: Loaded) -> list[Shown]:
    """Every option of every section and queue, in the order of the example file."""
    settings = loaded.settings
    rows = _rows(loaded, (), TOP, settings)
    for name, database in settings.named_databases.items():
        rows += _rows(loaded, settings.database_path(name), DATABASE, database)
    for name, queue in settings.queues.items():
        place = ("queues", name)
        if settings.databases:
            rows += _rows(loaded, place, QUEUE_ALONE, queue)
        rows += _rows(loaded, place, QUEUE, queue, inherit=True)
        rows += _rows(loaded, place, POLICY, queue.policy, inherit=True)
    rows += _rows(loaded, ("defaults",), QUEUE, settings.queue(""))
    rows += _rows(loaded, ("defaults",), POLICY, settings.defaults)
    for name, own in settings.types.items():
        rows += [
            Shown(
                path_text(("types", name, option)), POLICY[option].text(value), _origin(loaded, ("types", name, option))
            )
            for option, value in own.items()
        ]
    rows += _rows(loaded, ("supervisor",), SUPERVISOR, settings.supervisor)
    rows += _rows(loaded, ("maintenance",), MAINTENANCE, settings.maintenance)
    rows += _rows(loaded, ("envelope",), ENVELOPE, settings.envelope)
    rows += _rows(loaded, ("idempotency",), IDEMPOTENCY, settings.idempotency)
    rows += _rows(loaded, ("tracing",), TRACING, settings.tracing)
    rows += _rows(loaded, ("metrics",), METRICS, settings.metrics)
    rows += _rows(loaded, ("deck",), DECK, settings.deck)
    for name, user in settings.deck.users.items():
        rows += _rows(loaded, ("deck", "users", name), DECK_USER, user)
    rows += _rows(loaded, ("probes",), PROBES, settings.probes)
    return rows


def redacted(settings: Settings) -> Settings:
    """The settings without what may not be printed."""
    database = _without_password(settings.database)
    databases = {name: _without_password(one) for name, one in settings.databases.items()}
    deck = settings.deck
    deck = msgspec.structs.replace(
        deck,
        token=None if deck.token is None else HIDDEN,
        secret=None if deck.secret is None else HIDDEN,
        users={name: msgspec.structs.replace(user, password_hash=HIDDEN) for name, user in deck.users.items()},
    )
    return msgspec.structs.replace(settings, database=database, databases=databases, deck=deck)


def _without_password(database: DatabaseSettings) -> DatabaseSettings:
    return msgspec.structs.replace(database, url=redact(database.url))


def _rows(
    loaded: Loaded, place: tuple[str, ...], rules: Section, owner: msgspec.Struct, *, inherit: bool = False
) -> list[Shown]:
    rows = []
    for name, rule in rules.items():
        value = getattr(owner, name)
        text = _secret(value) if rule.secret and value is not None else rule.text(value)
        rows.append(Shown(path_text((*place, name)), text, _origin(loaded, (*place, name), inherit=inherit)))
    return rows


def _secret(value: str) -> str:
    return redact(value) if "://" in value else HIDDEN


def _origin(loaded: Loaded, place: tuple[str, ...], *, inherit: bool = False) -> str:
    found = loaded.origins.get(path_text(place))
    if found is None and inherit:
        found = loaded.origins.get(path_text(("defaults", place[-1])))
    return found or DEFAULT
