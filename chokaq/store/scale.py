"""The record of a scale recommendation: how many replicas a queue wants, and what that rests on."""

from typing import Protocol

from chokaq.lifecycle.scale import Reason, ScaleBounds, ScaleFigures, Unit, problem
from chokaq.store.errors import StoreRefused
from chokaq.store.names import check_name


class ScaleView(ScaleFigures, frozen=True, kw_only=True):
    """The answer with the figures it was made from."""

    queue: str
    unit: Unit
    replicas: int
    """The answer."""
    reason: Reason
    low: int
    """Fewer would be too busy."""
    high: int
    """More would be idle."""


class ScalingSession(Protocol):
    """The part of a session that autoscalers call."""

    def get_scale_recommendation(self, queue: str, bounds: ScaleBounds | None = None) -> ScaleView:
        """How many replicas a queue wants (the rule: chokaq/lifecycle/scale.py). Reads only. Counts stop at 100,000 jobs.

        Raises StoreRefused for bounds that make no sense. An unknown queue is an empty one.
        """
        ...


def checked(queue: str, bounds: ScaleBounds | None) -> ScaleBounds:
    """The bounds to use. Raises StoreRefused."""
    check_name("queue", queue)
    bounds = ScaleBounds() if bounds is None else bounds
    wrong = problem(bounds)
    if wrong is not None:
        raise StoreRefused(f"a scale recommendation wants {wrong}")
    return bounds
