"""From chokaq.yaml and the environment to checked settings, or to every reason why not."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from chokaq.config.combinations import check_combinations
from chokaq.config.databases import one_or_several, read_database, read_databases, read_place
from chokaq.config.document import Document
from chokaq.config.errors import ConfigError, Problem
from chokaq.config.reader import Reader, is_broken
from chokaq.config.rules import is_name
from chokaq.config.sections import (
    DATABASE,
    DATABASE_URL,
    DECK,
    DECK_USER,
    ENVELOPE,
    ENVIRONMENT,
    IDEMPOTENCY,
    MAINTENANCE,
    METRICS,
    POLICY,
    PROBES,
    QUEUE,
    QUEUE_ALONE,
    SECTIONS,
    SUPERVISOR,
    TOP,
    TRACING,
)
from chokaq.config.settings import (
    DeckSettings,
    DeckUser,
    EnvelopeSettings,
    IdempotencySettings,
    MaintenanceSettings,
    Policy,
    ProbesSettings,
    QueueSettings,
    Settings,
    SupervisorSettings,
    TracingSettings,
)
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.store.options import DatabaseSettings

DEFAULT_FILE = "chokaq.yaml"
MAX_FILE_BYTES = 4_000_000
MAX_USER = 100
"""Characters of a user's name: what the audit log holds of an actor."""


class Loaded(NamedTuple):
    """Settings, and where each option that is not a default came from."""

    settings: Settings
    origins: dict[str, str]
    """By option path: `chokaq.yaml:7` or `$CHOKAQ_DATABASE_URL`."""


def load_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of `path`, else of $CHOKAQ_CONFIG, else of ./chokaq.yaml, else the defaults; CHOKAQ_* wins over the file.

    `environ`: instead of the process's environment. Raises ConfigError, whose text lists every problem with its path.
    """
    return load(path, environ).settings


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, *, database: str | None = None) -> Loaded:
    """As `load_settings`, with the origin of every option. `database`: a URL instead of all databases that the file names."""
    environ = os.environ if environ is None else environ
    if database is not None:
        environ = {**environ, DATABASE_URL: database}
    file = find_file(path, environ)
    text = "" if file is None else _read(file)
    source = DEFAULT_FILE if file is None else file.name
    folder = Path.cwd() if file is None else file.parent
    reader = Reader(Document(text, str(file or source)), environ, folder, source)
    settings = _settings(reader, environ, file, alone=database is not None)
    if not reader.problems:
        reader.problems += check_combinations(settings)
    if reader.problems:
        reader.problems.sort(key=lambda problem: problem.line or 0)
        raise ConfigError(reader.problems, None if file is None else str(file))
    return Loaded(settings, reader.origins)


def with_origins(settings: Settings, environ: Mapping[str, str] | None = None) -> Loaded:
    """Settings that were read elsewhere, with the origins that their file and the environment give now; without a file: none."""
    try:
        return Loaded(settings, load(settings.source, environ).origins if settings.source is not None else {})
    except ConfigError:
        # Changed since, and broken: what was read then is what holds.
        return Loaded(settings, {})


def find_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The YAML file to read, absolute: the argument, $CHOKAQ_CONFIG, ./chokaq.yaml; None when there is none.

    Raises ConfigError when one is named and does not exist.
    """
    if path is not None:
        named, origin = path, ""
    elif environ.get("CHOKAQ_CONFIG"):
        named, origin = Path(environ["CHOKAQ_CONFIG"]), " (named by $CHOKAQ_CONFIG)"
    else:
        found = Path.cwd() / DEFAULT_FILE
        return found if found.is_file() else None
    if not named.is_file():
        what = "is a folder, not a file" if named.is_dir() else "does not exist"
        raise ConfigError(
            f"the configuration file {named}{origin} {what}; `chokaq config --example > chokaq.yaml` writes one"
        )
    return Path(os.path.abspath(named))  # noqa: PTH100 - resolve() would leave the folder a symlink stands in


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", str(file)) from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"is larger than {MAX_FILE_BYTES:,} bytes", str(file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", str(file)) from None


def _settings(reader: Reader, environ: Mapping[str, str], file: Path | None, *, alone: bool) -> Settings:
    """`alone`: the variable of the one database stands for all that the file names."""
    tree = reader.document.tree
    top = reader.section((), tree, TOP, besides=SECTIONS)
    database = read_database(reader, ("database",), tree.get("database"))
    several = read_databases(reader, tree.get("databases"))
    if several and not alone:
        environ = one_or_several(reader, environ)
    for variable, place in ENVIRONMENT.items():
        if environ.get(variable):
            value = reader.environment(variable, place, DATABASE["url"] if place[0] == "database" else TOP[place[-1]])
            if not is_broken(value):
                (database if place[0] == "database" else top)[place[-1]] = value
    from_environment = reader.origins.get("database.url", "").startswith("$")
    home = file.parent if file is not None and not from_environment else Path.cwd()
    database["url"] = absolute_sqlite(database.get("url", DatabaseSettings().url), home)
    databases = {
        name: DatabaseSettings(**(one | {"url": absolute_sqlite(one["url"], home)})) for name, one in several.items()
    }
    given = reader.section(("defaults",), tree.get("defaults"), POLICY | QUEUE)
    defaults = Policy(**{name: value for name, value in given.items() if name in POLICY})
    queue_defaults = {name: value for name, value in given.items() if name in QUEUE}
    queues = _queues(reader, tree.get("queues"), defaults, queue_defaults, databases)
    settings = Settings(
        **top,
        database=DatabaseSettings(**database),
        databases=databases,
        places=_places(queues, databases),
        defaults=defaults,
        queue_defaults=queue_defaults,
        queues=queues,
        types=_types(reader, tree.get("types")),
        supervisor=SupervisorSettings(**reader.section(("supervisor",), tree.get("supervisor"), SUPERVISOR)),
        maintenance=MaintenanceSettings(**reader.section(("maintenance",), tree.get("maintenance"), MAINTENANCE)),
        envelope=EnvelopeSettings(**reader.section(("envelope",), tree.get("envelope"), ENVELOPE)),
        idempotency=IdempotencySettings(**reader.section(("idempotency",), tree.get("idempotency"), IDEMPOTENCY)),
        tracing=TracingSettings(**reader.section(("tracing",), tree.get("tracing"), TRACING)),
        metrics=_metrics(reader, tree.get("metrics"), Path.cwd() if file is None else file.parent),
        deck=_deck(reader, tree.get("deck")),
        probes=ProbesSettings(**reader.section(("probes",), tree.get("probes"), PROBES)),
        source=file,
    )
    return settings.only(settings.database) if alone else settings.at(settings.default_database)


def _metrics(reader: Reader, value: object, home: Path) -> MetricsSettings:
    """A relative directory stands beside the YAML file, as a relative SQLite path does."""
    own = reader.section(("metrics",), value, METRICS)
    if own.get("directory") is not None:
        own["directory"] = str(home / own["directory"])
    return MetricsSettings(**own)


def _deck(reader: Reader, value: object) -> DeckSettings:
    own = reader.section(("deck",), value, DECK, besides=("users",))
    given = value.get("users") if isinstance(value, dict) else None
    users = {}
    for name, raw in reader.mapping(("deck", "users"), given).items():
        place = ("deck", "users", name)
        found = reader.section(place, raw, DECK_USER)
        if not 0 < len(name) <= MAX_USER or name != name.strip() or not name.isprintable():
            reader.complain(place, f"a user's name is 1 to {MAX_USER} printable characters")
        elif "password_hash" in found:
            users[name] = DeckUser(**found)
        elif isinstance(raw, dict) and "password_hash" not in raw:
            reader.complain(place, "needs a password_hash: `chokaq deck --hash-password` prints one")
    return DeckSettings(**own, users=users)


def _queues(
    reader: Reader,
    value: object,
    defaults: Policy,
    queue_defaults: dict[str, Any],
    databases: Collection[str],
) -> dict[str, QueueSettings]:
    queues = {}
    for name, raw in reader.mapping(("queues",), value).items():
        if not is_name(name):
            reader.complain(("queues", name), "a queue's name is 1 to 255 printable ASCII characters")
            continue
        own = reader.section(("queues", name), raw, QUEUE | QUEUE_ALONE | POLICY)
        own["database"] = read_place(reader, name, own.get("database"), databases)
        policy = msgspec.structs.replace(defaults, **{key: item for key, item in own.items() if key in POLICY})
        fields = queue_defaults | {key: item for key, item in own.items() if key not in POLICY}
        queues[name] = QueueSettings(name=name, policy=policy, **fields)
    return queues


def _places(queues: Mapping[str, QueueSettings], databases: Mapping[str, DatabaseSettings]) -> dict[str, str]:
    """The database of every queue that the YAML names; nothing when there is only one."""
    default = Settings(databases=dict(databases)).default_database
    return {name: queue.database or default for name, queue in queues.items()} if databases else {}


def _types(reader: Reader, value: object) -> dict[str, dict[str, object]]:
    types: dict[str, dict[str, object]] = {}
    for name, raw in reader.mapping(("types",), value).items():
        if not is_name(name):
            reader.complain(("types", name), "a type key is 1 to 255 printable ASCII characters")
        elif name.lower() in types:
            reader.complain(("types", name), "given twice: type keys are the same in upper and lower case")
        else:
            types[name.lower()] = reader.section(("types", name), raw, POLICY)
    return types


def absolute_sqlite(url: str, folder: Path) -> str:
    """A `sqlite:///` URL with its path made absolute against `folder`; any other URL as it is."""
    match = re.fullmatch(r"sqlite:///([^?]*)(.*)", url, re.DOTALL)
    if match is None or match[1].startswith("/") or match[1] in {"", ":memory:"}:
        return url
    return f"sqlite:///{quote(str(folder), safe='/')}/{match[1].removeprefix('./')}{match[2]}"


__all__ = ["ConfigError", "Loaded", "Problem", "absolute_sqlite", "find_file", "load", "load_settings", "with_origins"]
