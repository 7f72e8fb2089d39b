"""How many replicas a queue wants, for people and for autoscalers that do not speak SQL."""

from chokaq.lifecycle.scale import HOLDS, ScaleBounds, problem
from chokaq.operations.errors import OperationError
from chokaq.operations.queues import check_queue
from chokaq.store.protocol import Session
from chokaq.store.scale import ScaleView


def recommend_scale(session: Session, queue: str, bounds: ScaleBounds | None = None) -> ScaleView:
    """How many replicas a queue wants, and why. Changes nothing. Raises OperationError for bounds that make no sense.

    A queue that nobody knows is an empty one: an autoscaler may be deployed before the first job.
    """
    name, bounds = check_queue(queue), ScaleBounds() if bounds is None else bounds
    wrong = problem(bounds)
    if wrong is not None:
        raise OperationError(f"a scale recommendation wants {wrong}")
    return session.get_scale_recommendation(name, bounds)


def explain_scale(view: ScaleView) -> str:
    """Why, in one sentence."""
    capacity = view.live * view.replica_handlers
    if view.reason in HOLDS:
        cause = {
            "inactive": "the queue is out of service",
            "paused": "the queue is paused",
            "circuit": f"the circuits of {view.open_circuits:,} of its job types are open or being tried",
            "fleet_cap": f"as many leases are held as the fleet cap of {view.fleet_cap or 0:,} allows",
        }[view.reason]
        return f"The present number is kept: {cause}."
    busy = f"{max(view.running, view.busy_handlers):,} of {capacity:,} handlers are busy"
    if view.reason == "minimum":
        return f"Never fewer, by the minimum that was given; {busy}."
    if view.reason == "maximum":
        return f"Never more, by the maximum that was given; {busy}."
    if view.reason == "lag" and view.live == 0:
        return f"Nobody serves the queue, and {view.due + view.buffered + view.running:,} of its jobs are due or held."
    if view.reason == "lag":
        return f"The oldest of {view.due:,} due jobs has waited {(view.oldest_due_ms or 0) / 1_000:,.1f} s, and {busy}."
    if view.reason == "idle":
        return f"No job has waited too long for five minutes, and only {busy}."
    if view.late and view.high < view.live:
        return f"Only {busy}, but {view.late:,} jobs had to wait too long within five minutes: not fewer yet."
    return f"The present number suits the load: {busy}."


__all__ = ["ScaleBounds", "ScaleView", "explain_scale", "recommend_scale"]
