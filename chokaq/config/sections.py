"""Every option of chokaq.yaml, by section: its name and its rule. The defaults and meanings stand in chokaq.config.settings."""

import re

from chokaq.config.rules import (
    DAY,
    HOUR,
    INT_MS,
    MINUTE,
    Rule,
    choice,
    duration,
    flag,
    integer,
    is_address,
    is_database_name,
    is_label,
    is_name,
    is_network,
    is_secret,
    number,
    patterns,
    size,
    text,
    texts,
)

Section = dict[str, Rule]

_MEBI = 1024 * 1024

POLICY: Section = {
    "max_attempts": integer(1, 10_000),
    "retry_base_delay": duration(0.001, INT_MS),
    "retry_max_delay": duration(0.001, INT_MS),
    "retry_multiplier": number(1, 1_000),
    "retry_jitter": duration(0, INT_MS),
    "max_job_age": duration().or_null(),
    "execution_timeout": duration().or_null(),
    "on_timeout": choice("dead_letter", "retry"),
    "hard_limit_grace": duration(1, DAY),
    "on_crash": choice("dead_letter", "retry"),
    "crash_limit": integer(1, 1_000),
    "unknown_type_delay": duration(0.001, INT_MS),
    "unknown_type_grace": duration(0),
    "circuit": flag(),
    "circuit_failures": integer(1, 10_000),
    "circuit_window": duration(0.001, DAY),
    "circuit_open": duration(0.001, DAY),
    "circuit_probes": integer(1, 1_000),
    "circuit_probe_timeout": duration(0.001, DAY),
    "circuit_delay": duration(0.001, DAY),
}

QUEUE: Section = {
    "max_workers": integer(1, 10_000),
    "processes": integer(1, 256),
    "prefetch": integer(0, 1_000).or_null(),
    "fleet_max_workers": integer(1, 100_000).or_null(),
    "poll_min": duration(0.001, HOUR),
    "poll_max": duration(0.001, HOUR),
    "heartbeat": duration(0.1, HOUR),
    "heartbeat_failure_threshold": integer(1, 1_000),
    "cancel_on_heartbeat_failure": flag(),
    "fetched_timeout": duration(1, INT_MS),
    "zombie_timeout": duration(1, INT_MS),
    "stall_limit": duration(1, DAY),
    "max_jobs": integer(1, 1_000_000_000).or_null(),
    "max_memory": size(16 * _MEBI, 1024**5).or_null(),
    "archive_retention": duration(1).or_null(),
    "dlq_retention": duration(1).or_null(),
}

QUEUE_ALONE: Section = {"database": text("the name of one of `databases:`", is_database_name).or_null()}
"""Options of a queue that `defaults:` does not know."""

DATABASE: Section = {
    "url": text(
        "a URL: sqlite:///path or mssql://user:password@host/database", lambda value: "://" in value, secret=True
    ),
    "schema": text(
        "a plain name (letters, digits, _)", lambda value: bool(re.fullmatch(r"[A-Za-z_]\w{0,62}", value, re.ASCII))
    ),
    "connect_timeout": duration(1, HOUR),
    "command_timeout": duration(1, HOUR),
    "lock_timeout": duration(0.1, HOUR),
    "retries": integer(0, 100),
    "retry_base_delay": duration(0.001, MINUTE),
    "odbc_driver": text("the name or file of an ODBC driver", lambda value: bool(value.strip())).or_null(),
}

SUPERVISOR: Section = {
    "shutdown_grace": duration(1, DAY),
    "respawn_min": duration(0.01, HOUR),
    "respawn_max": duration(0.01, HOUR),
    "boot_timeout": duration(1, DAY),
}

MAINTENANCE: Section = {
    "rescue_interval": duration(1, DAY),
    "retention_interval": duration(1, DAY),
    "rollup_interval": duration(1, DAY),
    "batch_size": integer(1, 1_000),
}

ENVELOPE: Section = {"max_payload_bytes": size(1, 1_000_000)}

IDEMPOTENCY: Section = {
    "in_progress_ttl": duration(1),
    "result_ttl": duration(1).or_null(),
    "min_result_ttl": duration(1).or_null(),
    "max_result_ttl": duration(1).or_null(),
    "busy_delay": duration(0.1, HOUR),
}

DECK: Section = {
    "enabled": flag(),
    "host": text("a host name or an address", lambda value: bool(re.fullmatch(r"[A-Za-z0-9_.:\-]{1,255}", value))),
    "port": integer(0, 65_535),
    "database": text("the name of one of `databases:`", is_database_name).or_null(),
    "title": text("1 to 40 printable characters", lambda value: 0 < len(value.strip()) <= 40 and value.isprintable()),
    "token": text("32 to 200 printable ASCII characters", is_secret, secret=True).or_null(),
    "token_role": choice("viewer", "operator"),
    "proxy_header": text(
        "the name of a header, like X-Forwarded-User", lambda value: bool(re.fullmatch(r"[A-Za-z0-9\-]{1,100}", value))
    ).or_null(),
    "proxy_peers": texts("a list of addresses or networks, like ['10.0.0.0/8']", is_network),
    "proxy_operators": texts("a list of names", lambda value: bool(value.strip())),
    "secret": text("32 to 200 printable ASCII characters", is_secret, secret=True).or_null(),
    "session": duration(60, 30 * DAY),
    "origins": texts(
        "a list of origins, like ['https://deck.example.com']",
        lambda value: bool(re.fullmatch(r"https?://[A-Za-z0-9_.\-]+(:\d{1,5})?", value)),
    ),
    "lag_warning": duration(0.1, DAY),
    "lag_critical": duration(0.1, DAY),
}

TRACING: Section = {"enabled": flag(), "relation": choice("link", "child")}
METRICS: Section = {
    "enabled": flag(),
    "directory": text("the path of a folder", lambda value: bool(value.strip())).or_null(),
    "fleet_interval": duration(1, HOUR),
    "max_queues": integer(1, 10_000),
    "max_types": integer(1, 10_000),
    "max_errors": integer(1, 10_000),
    "max_reasons": integer(1, 10_000),
    "max_value_length": integer(1, 1_000),
    "unknown_value": text("1 to 1,000 printable characters", is_label),
    "overflow_value": text("1 to 1,000 printable characters", is_label),
}

DECK_USER: Section = {
    "password_hash": text(
        "an argon2 hash, as `chokaq deck --hash-password` prints it",
        lambda value: value.startswith("$argon2") and value.count("$") == 5,
        secret=True,
    ),
    "role": choice("viewer", "operator"),
}

PROBES: Section = {
    "host": text("an address, or localhost", is_address),
    "port": integer(0, 65_535).or_null(),
    "supervisor_timeout": duration(3, DAY),
    "heartbeat_timeout": duration(1, DAY),
    "loop_stalled": duration(1, DAY),
    "database_timeout": duration(0.1, MINUTE),
    "lag_degraded": duration(0, DAY).or_null(),
    "lag_unhealthy": duration(0.001, DAY).or_null(),
    "lag_exempt": texts("a list of queue names", is_name),
}

TOP: Section = {
    "app": text(
        "package.module:attribute", lambda value: bool(re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", value))
    ).or_null(),
    "production": flag(),
    "redact": patterns(),
    "log_level": choice("debug", "info", "warning", "error", "critical"),
    "log_format": choice("console", "json"),
    "log_repeats": integer(1, 1_000_000).or_null(),
}
"""The options that are no sections themselves."""

SECTIONS = (
    "database",
    "databases",
    "queues",
    "defaults",
    "types",
    "supervisor",
    "maintenance",
    "envelope",
    "idempotency",
    "tracing",
    "metrics",
    "deck",
    "probes",
)

DATABASE_URL = "CHOKAQ_DATABASE_URL"
ENVIRONMENT = {
    DATABASE_URL: ("database", "url"),
    "CHOKAQ_APP": ("app",),
    "CHOKAQ_PRODUCTION": ("production",),
    "CHOKAQ_LOG_LEVEL": ("log_level",),
    "CHOKAQ_LOG_FORMAT": ("log_format",),
}
"""Environment variables that win over the YAML, and the option each one sets."""

OTHER_ENVIRONMENT = ("CHOKAQ_CONFIG", "CHOKAQ_QUEUES")
"""The YAML file to read; the queues a worker serves (a comma-separated part of those it knows)."""
