"""Values that are each right and together impossible."""

import ipaddress

import msgspec

from chokaq.config.document import path_text
from chokaq.config.durations import format_duration
from chokaq.config.errors import Problem
from chokaq.config.settings import DeckSettings, Policy, QueueSettings, Settings
from chokaq.store.errors import StoreMisconfigured
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.url import SQLITE, DatabaseUrl


def check_combinations(settings: Settings) -> list[Problem]:
    """One problem per combination that cannot work, with the path of the setting to change."""
    problems = _policies(settings)
    for name, queue in settings.queues.items():
        if queue.poll_max < queue.poll_min:
            problems.append(_below(("queues", name, "poll_max"), queue.poll_max, "poll_min", queue.poll_min))
    problems += _leases(settings)
    supervisor = settings.supervisor
    if supervisor.respawn_max < supervisor.respawn_min:
        place = ("supervisor", "respawn_max")
        problems.append(_below(place, supervisor.respawn_max, "respawn_min", supervisor.respawn_min))
    return (
        problems
        + _idempotency(settings)
        + _metrics(settings)
        + _deck(settings.deck)
        + _probes(settings)
        + _databases(settings)
        + _shown(settings)
    )


def exposed(deck: DeckSettings) -> str | None:
    """Why The Deck must not be served with these settings; None when it may be."""
    if deck.has_authentication or is_loopback(deck.host):
        return None
    return (
        f"{deck.host!r} is reached from beyond this host, and nobody would have to say who they are: name deck.users, "
        "deck.token or deck.proxy_header, or listen on 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """True for an address (or name) that only this host reaches."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _deck(deck: DeckSettings) -> list[Problem]:
    problems = []
    if deck.lag_critical <= deck.lag_warning:
        least = format_duration(deck.lag_warning)
        problems.append(
            Problem(
                "deck.lag_critical", f"must be above lag_warning ({least}), got {format_duration(deck.lag_critical)}"
            )
        )
    told = exposed(deck)
    if told is not None:
        problems.append(Problem("deck.host", told))
    return problems


def _probes(settings: Settings) -> list[Problem]:
    probes, deck = settings.probes, settings.deck
    problems = []
    degraded, unhealthy = probes.lag_degraded, probes.lag_unhealthy
    if degraded is not None and unhealthy is not None and unhealthy < degraded:
        problems.append(_below(("probes", "lag_unhealthy"), unhealthy, "lag_degraded", degraded))
    if probes.heartbeat_timeout < probes.loop_stalled:
        place = ("probes", "heartbeat_timeout")
        problems.append(_below(place, probes.heartbeat_timeout, "loop_stalled", probes.loop_stalled))
    if deck.enabled and probes.port and probes.port == deck.port:
        problems.append(Problem("probes.port", f"must not be the port of The Deck, which is {deck.port}, too"))
    return problems


def _idempotency(settings: Settings) -> list[Problem]:
    """The bounds of how long a completed run is remembered, and the default between them."""
    own = settings.idempotency
    least, most, default = own.min_result_ttl, own.max_result_ttl, own.result_ttl
    if least is not None and most is not None and most < least:
        return [_below(("idempotency", "max_result_ttl"), most, "min_result_ttl", least)]
    place = ("idempotency", "result_ttl")
    if least is not None and default is not None and default < least:
        return [_below(place, default, "min_result_ttl", least)]
    if most is not None and (default is None or default > most):
        got = "null (for ever)" if default is None else format_duration(default)
        return [Problem(path_text(place), f"must be at most max_result_ttl ({format_duration(most)}), got {got}")]
    return []


def _metrics(settings: Settings) -> list[Problem]:
    """The words that stand in for label values have to be labels themselves, and two different ones."""
    own = settings.metrics
    problems = []
    for option in ("unknown_value", "overflow_value"):
        length = len(getattr(own, option))
        if length > own.max_value_length:
            message = f"has {length} characters, more than max_value_length ({own.max_value_length}) allows"
            problems.append(Problem(f"metrics.{option}", message))
    if own.unknown_value == own.overflow_value:
        message = f"must not be the same as unknown_value ({own.unknown_value!r})"
        problems.append(Problem("metrics.overflow_value", message))
    return problems


def _leases(settings: Settings) -> list[Problem]:
    """A lease that runs out before it is renewed once makes every healthy job look dead."""
    common = settings.queue("")
    found: list[tuple[tuple[str, ...], QueueSettings]] = [(("defaults",), common)]
    found += [(("queues", name), queue) for name, queue in settings.queues.items()]
    problems = []
    for place, queue in found:
        for option in ("fetched_timeout", "zombie_timeout"):
            value = getattr(queue, option)
            inherited = queue is not common and (value, queue.heartbeat) == (getattr(common, option), common.heartbeat)
            if value < queue.heartbeat and not inherited:
                problems.append(_below((*place, option), value, "heartbeat", queue.heartbeat))
    return problems


def _databases(settings: Settings) -> list[Problem]:
    problems = []
    for name, database in settings.named_databases.items():
        told = _database(database, production=settings.production)
        if told is not None:
            problems.append(Problem(path_text((*settings.database_path(name), "url")), told))
    if settings.several and not problems:
        problems += _same(settings)
    return problems


def _database(database: DatabaseSettings, *, production: bool) -> str | None:
    try:
        scheme = DatabaseUrl.parse(database.url).scheme
    except StoreMisconfigured as error:
        return str(error).removeprefix("database.url: ")
    if production and scheme == SQLITE:
        return "production: true refuses SQLite; name a SQL Server (mssql://…), or set production: false"
    return None


def _shown(settings: Settings) -> list[Problem]:
    name = settings.deck.database
    if name is None or name in settings.databases:
        return []
    known = ", ".join(settings.databases) or "nobody: there is only one database"
    return [Problem("deck.database", f"there is no database {name!r}; `databases:` names {known}")]


def _same(settings: Settings) -> list[Problem]:
    """Two names for one database would be two halves of one truth."""
    problems, first = [], dict[str, str]()
    for name, database in settings.databases.items():
        place = settings.database_path(name)
        try:
            identity = open_store(database).identity
        except StoreMisconfigured as error:
            problems.append(Problem(path_text((*place, "url")), str(error).removeprefix("database.url: ")))
            continue
        other = first.setdefault(identity, name)
        if other != name:
            problems.append(Problem(path_text(place), f"is the same database as {other}: give each database one name"))
    return problems


def _policies(settings: Settings) -> list[Problem]:
    found: dict[tuple[str, ...], Policy] = {("defaults",): settings.defaults}
    for name, queue in settings.queues.items():
        found["queues", name] = queue.policy
    for name, own in settings.types.items():
        found["types", name] = msgspec.structs.replace(settings.defaults, **own)
    problems = []
    for place, policy in found.items():
        if policy.retry_max_delay < policy.retry_base_delay:
            if place != ("defaults",) and _same_delays(policy, settings.defaults):
                continue  # inherited: told once, at its place
            where = (*place, "retry_max_delay")
            problems.append(_below(where, policy.retry_max_delay, "retry_base_delay", policy.retry_base_delay))
    return problems


def _same_delays(policy: Policy, other: Policy) -> bool:
    return (policy.retry_max_delay, policy.retry_base_delay) == (other.retry_max_delay, other.retry_base_delay)


def _below(place: tuple[str, ...], value: float, other: str, least: float) -> Problem:
    message = f"must be at least {other} ({format_duration(least)}), got {format_duration(value)}"
    return Problem(path_text(place), message)
