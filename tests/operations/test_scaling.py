"""A scale recommendation in words."""

from typing import Any

import pytest

from chokaq.operations import OperationError, ScaleBounds, ScaleView, explain_scale, recommend_scale
from chokaq.store.protocol import Session


def view(**fields: Any) -> ScaleView:
    """Three live replicas of 50 handlers, 100 of them busy."""
    given: dict[str, Any] = {
        "queue": "mail", "unit": "replica", "replicas": 3, "reason": "steady", "low": 3, "high": 4, "live": 3, "settled": 3,
        "replica_handlers": 50, "running": 100, **fields,
    }  # fmt: skip
    return ScaleView(**given)


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (view(), "The present number suits the load: 100 of 150 handlers are busy."),
        (view(busy_handlers=120), "The present number suits the load: 120 of 150 handlers are busy."),
        (
            view(replicas=5, reason="lag", due=1_200, oldest_due_ms=14_020, running=150),
            "The oldest of 1,200 due jobs has waited 14.0 s, and 150 of 150 handlers are busy.",
        ),
        (
            view(replicas=1, reason="lag", live=0, due=3, running=2),
            "Nobody serves the queue, and 5 of its jobs are due or held.",
        ),
        (
            view(replicas=1, reason="idle", running=7),
            "No job has waited too long for five minutes, and only 7 of 150 handlers are busy.",
        ),
        (
            view(running=7, high=1, late=12),
            "Only 7 of 150 handlers are busy, but 12 jobs had to wait too long within five minutes: not fewer yet.",
        ),
        (view(reason="minimum"), "Never fewer, by the minimum that was given; 100 of 150 handlers are busy."),
        (view(reason="maximum"), "Never more, by the maximum that was given; 100 of 150 handlers are busy."),
        (view(reason="inactive"), "The present number is kept: the queue is out of service."),
        (
            view(reason="circuit", open_circuits=2),
            "The present number is kept: the circuits of 2 of its job types are open or being tried.",
        ),
        (
            view(reason="fleet_cap", fleet_cap=1_000),
            "The present number is kept: as many leases are held as the fleet cap of 1,000 allows.",
        ),
    ],
)
def test_the_reason_is_told_in_a_sentence(shown: ScaleView, sentence: str) -> None:
    assert explain_scale(shown) == sentence


def test_bounds_are_checked_before_the_store_is_asked(session: Session) -> None:
    with pytest.raises(OperationError, match="a target lag from 0 to 24 h, got -1 ms"):
        recommend_scale(session, "mail", ScaleBounds(target_lag_ms=-1))
    with pytest.raises(OperationError, match="is not a queue name"):
        recommend_scale(session, " ")
    assert recommend_scale(session, "mail", ScaleBounds(min_replicas=2)).replicas == 2
