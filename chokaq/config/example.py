"""The commented example file of `chokaq config --example`: every option, what it means, and its default."""

import textwrap
from collections.abc import Iterator

import msgspec

from chokaq.config.docs import field_docs
from chokaq.config.sections import (
    DATABASE,
    DECK,
    ENVELOPE,
    ENVIRONMENT,
    IDEMPOTENCY,
    MAINTENANCE,
    METRICS,
    POLICY,
    PROBES,
    QUEUE,
    SUPERVISOR,
    TOP,
    TRACING,
    Section,
)
from chokaq.config.settings import (
    DeckSettings,
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

WIDTH = 100

_HEAD = f"""\
# chokaq.yaml: every option with its default. Take away the `#` before an option to change it.
#
# Durations: 1h30m, 15s, 500ms, 2d, or a number of seconds. Sizes: 512MB, or a number of bytes.
# Variables, in any value: ${{NAME}}, ${{NAME:-default}}, ${{file:/run/secrets/password}}; $${{NAME}} is the text itself.
# A file's path may begin with an environment variable: ${{file:$CREDENTIALS_DIRECTORY/password}}.
# These environment variables win over the file: {", ".join(list(ENVIRONMENT)[:3])},
# {", ".join(list(ENVIRONMENT)[3:])}. CHOKAQ_CONFIG names the file, CHOKAQ_QUEUES narrows a worker's queues.
"""

_DATABASES = """\
# Several databases, when one server is full: instead of `database:`, by name, each as above. A queue lives in the one
# that it names, else in the one called main, else in the first. See docs/databases.md.
# databases:
#   main: mssql://user:${PASSWORD}@host/jobs?encrypt=yes
#   archive: {url: "sqlite:///other.db"}
"""

_QUEUES = """\
# The queues a worker serves; without any, every queue the application uses. A queue takes every option
# that stands under `defaults:`, for itself alone.
queues:
  #emails: {max_workers: 20}
  #messages: {max_workers: 50, processes: 2, on_crash: retry}
  #reports: {max_workers: 3, execution_timeout: 1h, fleet_max_workers: 6}
  # One more option, for a queue alone: `database: NAME`, with `databases:`.
"""

_TYPES = """\
# What differs for jobs of one type, whatever their queue: options of the second half of `defaults:`.
types:
  #email.send.v1: {max_attempts: 5, execution_timeout: 2m}
"""

_USERS = """\
  # Who may sign in, by name. `chokaq deck --hash-password` prints the hash of a password.
  users:
    #anna: {password_hash: '$argon2id$v=19$m=65536,t=3,p=4$SALT$HASH', role: operator}
"""


def example() -> str:
    """The whole file. It loads as it stands, as the defaults; so does it with every option's `#` taken away."""
    parts = [
        _HEAD,
        "".join(_options(Settings, TOP, Settings(), "")),
        _section("database", "Where the jobs live. A bare URL instead of this section will do.", _fields("database")),
        _DATABASES,
        _QUEUES,
        _section(
            "defaults", "What holds for every queue and every type that does not say otherwise.", _fields("defaults")
        ),
        _TYPES,
        _section("supervisor", "The parent process of a worker.", _fields("supervisor")),
        _section(
            "maintenance", "The process that cleans up after dead workers and deletes old rows.", _fields("maintenance")
        ),
        _section("envelope", "Limits of what may be enqueued.", _fields("envelope")),
        _section(
            "idempotency",
            "The middleware chokaq.idempotent, where the code that uses it does not say otherwise.",
            _fields("idempotency"),
        ),
        _section("tracing", "OpenTelemetry: it needs the extra chokaq[otel].", _fields("tracing")),
        _section("metrics", "What the processes of a worker count for Prometheus.", _fields("metrics")),
        _section("deck", "The Deck, the web dashboard: it needs the extra chokaq[deck].", _fields("deck")) + _USERS,
        _section("probes", "What a worker answers to probes (docs/health.md) and to Prometheus.", _fields("probes")),
    ]
    return "\n".join(parts)


def _fields(section: str) -> Iterator[str]:
    match section:
        case "database":
            yield from _options(DatabaseSettings, DATABASE, DatabaseSettings())
        case "defaults":
            yield from _options(QueueSettings, QUEUE, QueueSettings(name=""))
            yield from _options(Policy, POLICY, Policy())
        case "supervisor":
            yield from _options(SupervisorSettings, SUPERVISOR, SupervisorSettings())
        case "maintenance":
            yield from _options(MaintenanceSettings, MAINTENANCE, MaintenanceSettings())
        case "idempotency":
            yield from _options(IdempotencySettings, IDEMPOTENCY, IdempotencySettings())
        case "tracing":
            yield from _options(TracingSettings, TRACING, TracingSettings())
        case "metrics":
            yield from _options(MetricsSettings, METRICS, MetricsSettings())
        case "deck":
            yield from _options(DeckSettings, DECK, DeckSettings())
        case "probes":
            yield from _options(ProbesSettings, PROBES, ProbesSettings())
        case _:
            yield from _options(EnvelopeSettings, ENVELOPE, EnvelopeSettings())


def _section(name: str, meaning: str, options: Iterator[str]) -> str:
    return f"# {meaning}\n{name}:\n{''.join(options)}"


def _options(
    owner: type[msgspec.Struct], rules: Section, defaults: msgspec.Struct, indent: str = "  "
) -> Iterator[str]:
    docs = field_docs(owner)
    for name, rule in rules.items():
        meaning = docs[name].replace("None:", "null:").replace(" Holds secrets: never printed as it is.", "")
        for line in textwrap.wrap(meaning, WIDTH):
            yield f"{indent}# {line}\n"
        option = f"{indent}#{name}: {rule.text(getattr(defaults, name))}"
        span = ", or ".join(filter(None, (rule.span, "null" if rule.optional else "")))
        yield f"{option:<40}# {span}\n" if rule.span else f"{option}\n"
