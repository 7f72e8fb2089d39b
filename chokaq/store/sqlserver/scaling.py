"""What autoscalers ask: GetScaleRecommendation."""

from chokaq.lifecycle.scale import ScaleBounds
from chokaq.store.scale import ScaleView, checked
from chokaq.store.sqlserver.calling import Calling


class ScalingOperations(Calling):
    """See `chokaq.store.scale.ScalingSession`."""

    def get_scale_recommendation(self, queue: str, bounds: ScaleBounds | None = None) -> ScaleView:
        """How many replicas a queue wants."""
        bounds = checked(queue, bounds)
        _, [row] = self._call(
            "GetScaleRecommendation",
            queue,
            bounds.min_replicas,
            bounds.max_replicas,
            bounds.target_lag_ms,
            bounds.catch_up_ms,
            bounds.replica_handlers,
            -1 if bounds.fleet_cap is None else bounds.fleet_cap,
            bounds.busy_percent,
            bounds.idle_percent,
            bounds.unit,
            True,
        )
        replicas, reason, live, settled, handlers, due, oldest, buffered, running, busy, mean, late, *rest = row
        circuits, cap, low, high, paused, active = rest
        return ScaleView(
            queue=queue,
            unit=bounds.unit,
            replicas=replicas,
            reason=reason,
            low=low,
            high=high,
            live=live,
            settled=settled,
            replica_handlers=handlers,
            paused=bool(paused),
            active=bool(active),
            open_circuits=circuits,
            fleet_cap=cap,
            due=due,
            oldest_due_ms=None if oldest is None else max(oldest, 0),
            buffered=buffered,
            running=running,
            busy_handlers=busy,
            mean_run_ms=mean,
            late=late,
        )
