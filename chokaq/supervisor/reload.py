"""What a reload changes: old posts against new settings. Pure."""

import msgspec

from chokaq.config.settings import (
    DeckSettings,
    MaintenanceSettings,
    ProbesSettings,
    QueueSettings,
    Settings,
    SupervisorSettings,
)
from chokaq.supervisor.children import Assignment, Post


class ReloadPlan(msgspec.Struct, frozen=True):
    """What has to happen to the posts."""

    close: list[Post]
    """Their queue is gone, or it has fewer processes now."""
    open: list[Assignment]
    """New queues, and more processes for known ones."""
    replace: list[tuple[Post, Assignment]]
    """Their child must run with other settings."""


def plan_reload(posts: dict[str, list[Post]], old: Settings, new: Settings) -> ReloadPlan:
    """Compare what the children run with (not what was loaded last: an earlier replacement may have failed).

    The number of processes follows the file only when the file changed it, so that a reload keeps what TTIN and TTOU did.
    """
    plan = ReloadPlan([], [], [])
    for name, queue_posts in posts.items():
        queue = new.queues.get(name)
        if queue is None:
            plan.close.extend(queue_posts)
            continue
        before = old.queues.get(name)
        wanted = len(queue_posts) if before is not None and before.processes == queue.processes else queue.processes
        by_index = sorted(queue_posts, key=lambda post: post.index)
        plan.close.extend(by_index[wanted:])
        plan.open.extend(Assignment(queue, new) for _ in range(wanted - len(by_index)))
        plan.replace.extend((post, Assignment(queue, new)) for post in by_index[:wanted] if _differs(post, queue, new))
    for name, queue in new.queues.items():
        if name not in posts:
            plan.open.extend(Assignment(queue, new) for _ in range(queue.processes))
    return plan


def _differs(post: Post, queue: QueueSettings, settings: Settings) -> bool:
    running = post.assignment
    return _queue_view(running.queue) != _queue_view(queue) or _child_view(running.settings) != _child_view(settings)


def _queue_view(queue: QueueSettings) -> QueueSettings:
    """Everything of a queue that one child can notice."""
    return msgspec.structs.replace(queue, processes=1)


def _child_view(settings: Settings) -> Settings:
    """Everything shared that a child can notice: not the other queues, nor what only the other processes read."""
    return msgspec.structs.replace(
        without_level(settings),
        queues={},
        registered={},
        source=None,
        maintenance=MaintenanceSettings(),
        deck=DeckSettings(),
        probes=ProbesSettings(),
        metrics=msgspec.structs.replace(settings.metrics, enabled=True, directory=None, fleet_interval=0.0),
        supervisor=SupervisorSettings(shutdown_grace=settings.supervisor.shutdown_grace),
    )


def without_level(settings: Settings) -> Settings:
    """Everything but the log level, which changes in processes that run."""
    return msgspec.structs.replace(settings, log_level="")


def logging_of(settings: Settings) -> tuple[object, ...]:
    """What of the logs cannot change in a child that runs."""
    return settings.log_format, settings.redact, settings.log_repeats
