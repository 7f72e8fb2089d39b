"""From settings to what the store needs to know when it settles the jobs of the dead."""

import random
from collections.abc import Callable

from chokaq.config.settings import Policy, Settings
from chokaq.lifecycle.retry import backoff
from chokaq.store.records import CrashPolicies, CrashPolicy

MAX_STEPS = 50
"""Delays worked out at most; the last one repeats, and by then it is the ceiling."""


def crash_policies(settings: Settings, queue: str, chance: Callable[[], float] = random.random) -> CrashPolicies:
    """The crash policy of a queue and of every type that has settings of its own, in the YAML or in code.

    `chance` in [0, 1) draws the jitter, anew for every call: jobs of one crash come back together, those of two do not.
    """
    return CrashPolicies(
        default=crash_policy(settings.queue(queue).policy, chance),
        types={
            type_key: crash_policy(settings.policy(queue, type_key), chance)
            for type_key in {**settings.registered, **settings.types}
        },
    )


def crash_policy(policy: Policy, chance: Callable[[], float]) -> CrashPolicy:
    """The part of a policy that concerns a crash; durations become milliseconds."""
    steps = min(max(policy.max_attempts, 1), MAX_STEPS)
    delays = (
        backoff(
            attempts,
            base=policy.retry_base_delay,
            multiplier=policy.retry_multiplier,
            maximum=policy.retry_max_delay,
            jitter=policy.retry_jitter,
            chance=chance(),
        )
        for attempts in range(1, steps + 1)
    )
    return CrashPolicy(
        on_crash=policy.on_crash,
        crash_limit=policy.crash_limit,
        max_attempts=policy.max_attempts,
        backoff_ms=tuple(round(delay * 1000) for delay in delays),
        max_age_ms=None if policy.max_job_age is None else round(policy.max_job_age * 1000),
    )
