"""From settings to crash policies."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from chokaq.config.settings import Policy, QueueSettings, Settings
from chokaq.maintenance.policies import crash_policies, crash_policy


def test_the_queue_rules_over_the_defaults_and_the_type_over_the_queue() -> None:
    settings = Settings(
        defaults=Policy(crash_limit=9),
        queues={"emails": QueueSettings(name="emails", policy=Policy(on_crash="retry", crash_limit=5))},
        types={"email.send.v1": {"crash_limit": 1}},
    )
    policies = crash_policies(settings, "emails", chance=lambda: 0.0)
    assert (policies.default.on_crash, policies.default.crash_limit) == ("retry", 5)
    assert (policies.types["email.send.v1"].on_crash, policies.types["email.send.v1"].crash_limit) == ("retry", 1)
    assert crash_policies(settings, "elsewhere", chance=lambda: 0.0).default.crash_limit == 9


def test_what_the_applications_code_says_of_a_type_counts_and_the_yaml_wins() -> None:
    settings = Settings(
        queues={"emails": QueueSettings(name="emails", policy=Policy(max_attempts=2))},
        registered={"mail.v1": {"on_crash": "retry", "crash_limit": 7}, "note.v1": {"crash_limit": 5}},
        types={"mail.v1": {"crash_limit": 4}},
    )
    policies = crash_policies(settings, "emails", chance=lambda: 0.0)
    mail, note = policies.types["mail.v1"], policies.types["note.v1"]
    assert (mail.on_crash, mail.crash_limit, mail.max_attempts) == ("retry", 4, 2)
    assert (note.on_crash, note.crash_limit) == ("dead_letter", 5)


def test_the_delays_double_up_to_the_ceiling_with_jitter_inside_it() -> None:
    policy = Policy(max_attempts=4, retry_base_delay=3.0, retry_max_delay=10.0, retry_jitter=1.0)
    assert crash_policy(policy, lambda: 0.0).backoff_ms == (3_000, 6_000, 10_000, 10_000)
    assert crash_policy(policy, lambda: 0.5).backoff_ms == (3_500, 6_500, 10_000, 10_000)


@given(st.integers(1, 10_000), st.floats(0, 1e6), st.floats(0, 0.999))
def test_there_is_always_a_delay_and_never_one_above_the_ceiling(attempts: int, base: float, chance: float) -> None:
    policy = msgspec.structs.replace(Policy(), max_attempts=attempts, retry_base_delay=base)
    delays = crash_policy(policy, lambda: chance).backoff_ms
    assert 1 <= len(delays) <= 50
    assert all(0 <= delay <= policy.retry_max_delay * 1000 for delay in delays)


def test_no_age_limit_stays_none() -> None:
    assert crash_policy(Policy(max_job_age=None), lambda: 0.0).max_age_ms is None
