"""Settings that are allowed and contradict each other all the same: what `chokaq check` warns about."""

import difflib
import importlib.util
from collections.abc import Iterator, Mapping

import msgspec

from chokaq.config.application import AppFacts
from chokaq.config.document import path_text
from chokaq.config.durations import format_duration
from chokaq.config.errors import Problem
from chokaq.config.sections import ENVIRONMENT, OTHER_ENVIRONMENT
from chokaq.config.settings import Policy, QueueSettings, Settings

CANCEL_SECONDS = 5.0
"""Handlers are cancelled this long before the end of a drain."""


def check_settings(settings: Settings) -> list[Problem]:
    """Warnings about the settings alone, each with the path of the setting to change."""
    found = [*_policy(("defaults",), settings.defaults)]
    for name, queue in settings.queues.items():
        found += _queue(("queues", name), queue)
        if queue.policy != settings.defaults:
            found += _policy(("queues", name), queue.policy)
    if settings.queue_defaults and not settings.queues:
        found += _queue(("defaults",), settings.queue(""))
    for name, own in settings.types.items():
        found += _policy(("types", name), msgspec.structs.replace(settings.defaults, **own))
    found += _processes(settings)
    if settings.tracing.enabled and not _is_installed("opentelemetry.sdk"):
        missing = "true, but OpenTelemetry is not installed here: pip install 'chokaq[otel]'"
        found.append(_warning(("tracing", "enabled"), missing))
    found += _probes(settings)
    return found


def check_application(settings: Settings, facts: AppFacts) -> list[Problem]:
    """Warnings about what the application registers and what the settings say about it."""
    idle = "no job and no pipe of the application goes to this queue"
    found = [_warning(("queues", name), idle) for name in settings.queues if name not in facts.queues]
    if settings.queues:
        for name in facts.queues:
            if name not in settings.queues:
                types = [key for key, queue in facts.jobs.items() if queue == name]
                what = f"jobs of {', '.join(types)} go" if types else "a pipe goes"
                found.append(_warning(("queues",), f"{what} to the queue {name}, which this worker does not serve"))
    for key, queue in facts.jobs.items():
        if key not in facts.handled and queue not in facts.pipes:
            found.append(_warning(("app",), f"the job type {key} has no handler: its jobs will end as FatalError"))
    found += [_warning(("app",), stray) for stray in facts.strays]
    known = {key.lower() for key in facts.jobs}
    for key in settings.types:
        if key not in known and not facts.pipes:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found.append(_warning(("types", key), f"the application has no such job type{hint}"))
    return found


def check_environment(environ: Mapping[str, str]) -> list[Problem]:
    """Warnings about CHOKAQ_* variables that look like a misspelt one."""
    known = [*ENVIRONMENT, *OTHER_ENVIRONMENT]
    found = []
    for name in environ:
        if name.startswith("CHOKAQ_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            if near:
                found.append(Problem(f"${name}", f"is not known and does nothing; did you mean {near[0]}?"))
    return found


def _queue(place: tuple[str, ...], queue: QueueSettings) -> Iterator[Problem]:
    beat = format_duration(queue.heartbeat)
    for option in ("zombie_timeout", "fetched_timeout"):
        value = getattr(queue, option)
        if value < 3 * queue.heartbeat:
            yield _warning(
                (*place, option),
                f"{format_duration(value)} is under three heartbeats ({beat} each): one slow call makes a healthy job look dead",
            )
    cap, here = queue.fleet_max_workers, queue.max_workers * queue.processes
    if cap is not None and here > cap:
        message = f"{cap} is below what one worker alone could run ({here} = max_workers times processes): the rest stays idle"
        yield _warning((*place, "fleet_max_workers"), message)
    if queue.poll_max > 10:
        message = (
            f"{format_duration(queue.poll_max)} is how late an idle child may notice a job enqueued on another host"
        )
        yield _warning((*place, "poll_max"), message)


def _policy(place: tuple[str, ...], policy: Policy) -> Iterator[Problem]:
    age = policy.max_job_age
    if age is not None and policy.execution_timeout is not None and policy.execution_timeout > age:
        message = (
            f"{format_duration(policy.execution_timeout)} is above max_job_age ({format_duration(age)}): "
            "a job that fails late is too old for its retry"
        )
        yield _warning((*place, "execution_timeout"), message)
    if age is not None and policy.retry_base_delay > age:
        delay = format_duration(policy.retry_base_delay)
        message = f"{delay} is above max_job_age ({format_duration(age)}): no job is ever retried"
        yield _warning((*place, "retry_base_delay"), message)
    if policy.max_attempts == 1:
        for option in ("on_timeout", "on_crash"):
            if getattr(policy, option) == "retry":
                yield _warning((*place, option), "retry has no effect with max_attempts: 1")
    if policy.on_crash == "retry" and policy.crash_limit == 1:
        yield _warning((*place, "crash_limit"), "1 stops a job at its first crash: on_crash: retry has no effect")
    wait, option = max((policy.circuit_open, "circuit_open"), (policy.circuit_delay, "circuit_delay"))
    if policy.circuit and age is not None and wait > age:
        message = (
            f"{format_duration(wait)} is above max_job_age ({format_duration(age)}): "
            "a job that meets an open circuit is too old by the time it may run"
        )
        yield _warning((*place, option), message)


def _processes(settings: Settings) -> Iterator[Problem]:
    supervisor = settings.supervisor
    if supervisor.shutdown_grace < CANCEL_SECONDS:
        message = (
            f"{format_duration(supervisor.shutdown_grace)} is under {format_duration(CANCEL_SECONDS)}: "
            "running jobs are cancelled the moment a shutdown begins"
        )
        yield _warning(("supervisor", "shutdown_grace"), message)
    yield from _databases(settings)
    shortest = min((queue.zombie_timeout for queue in settings.queues.values()), default=None)
    interval = settings.maintenance.rescue_interval
    if shortest is not None and interval > shortest:
        message = (
            f"{format_duration(interval)} is above the shortest zombie_timeout ({format_duration(shortest)}): "
            "lost jobs wait for the next pass"
        )
        yield _warning(("maintenance", "rescue_interval"), message)


def _databases(settings: Settings) -> Iterator[Problem]:
    boot = settings.supervisor.boot_timeout
    for name, database in settings.named_databases.items():
        place = settings.database_path(name)
        if boot < database.connect_timeout:
            message = (
                f"{format_duration(boot)} is below {path_text((*place, 'connect_timeout'))} "
                f"({format_duration(database.connect_timeout)}): a slow connection is taken for a child that cannot boot"
            )
            yield _warning(("supervisor", "boot_timeout"), message)
        if database.lock_timeout >= database.command_timeout:
            message = (
                f"{format_duration(database.lock_timeout)} is not below command_timeout "
                f"({format_duration(database.command_timeout)}): a lock ends the command instead of being waited out"
            )
            yield _warning((*place, "lock_timeout"), message)
        if settings.queues and name not in map(settings.database_name, settings.queues):
            message = "no queue of this file lives here: no worker serves it, rescues its jobs or deletes its old rows"
            yield _warning(place, message)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _probes(settings: Settings) -> Iterator[Problem]:
    probes = settings.probes
    for name in probes.lag_exempt:
        if settings.queues and name not in settings.queues:
            yield _warning(("probes", "lag_exempt"), f"names the queue {name}, which this worker does not serve")
    for name, queue in settings.queues.items():
        if probes.port is not None and queue.stall_limit < probes.loop_stalled:
            message = (
                f"{format_duration(probes.loop_stalled)} is above stall_limit of {name} "
                f"({format_duration(queue.stall_limit)}): a stalled child is killed before /healthz tells of it"
            )
            yield _warning(("probes", "loop_stalled"), message)


def _warning(place: tuple[str, ...], message: str) -> Problem:
    return Problem(path_text(place), message)
