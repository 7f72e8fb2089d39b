"""What autoscalers ask: GetScaleRecommendation."""

import sqlite3
from typing import Any

import msgspec

from chokaq.lifecycle.scale import WINDOW_MS, ScaleBounds, ScaleFigures, recommend, up
from chokaq.store.scale import ScaleView, checked
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.sqlite.connection import Connected
from chokaq.store.sqlite.statements import load

_SCALE = load("GetScaleRecommendation")
_COUNTED = 100_000
_MINUTE = 60_000
_LONGEST_SILENCE = 10 * _MINUTE
_USUAL_HANDLERS = 50
"""`max_workers` of a queue that no child has served yet."""


class ScalingOperations(Connected):
    """See `chokaq.store.scale.ScalingSession`."""

    def get_scale_recommendation(self, queue: str, bounds: ScaleBounds | None = None) -> ScaleView:
        """How many replicas a queue wants."""
        bounds = checked(queue, bounds)
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                figures = _figures(connection, queue, bounds, now_ms())
            finally:
                connection.execute("COMMIT")
        advice = recommend(figures, bounds)
        return ScaleView(
            queue=queue,
            unit=bounds.unit,
            replicas=advice.replicas,
            reason=advice.reason,
            low=advice.low,
            high=advice.high,
            **msgspec.structs.asdict(figures),
        )


def _figures(connection: sqlite3.Connection, queue: str, bounds: ScaleBounds, now: int) -> ScaleFigures:
    def row(name: str) -> Any:
        return connection.execute(_SCALE[name], key).fetchone()

    key: dict[str, Any] = {
        "queue": queue,
        "now": now,
        "process": bounds.unit == "process",
        "target": bounds.target_lag_ms,
    }
    paused, active, max_workers, cap = row("queue") or (0, 1, None, None)
    # The newest heartbeat is the measure: after a time in which nobody could write, all are old.
    heard = row("heard")[0]
    heard = now if heard is None else min(heard, now)
    key |= {"earliest": max(heard - _MINUTE, now - _LONGEST_SILENCE), "max_workers": max_workers}
    live, settled, handlers = row("units")
    spent, run, finished, late = row("buckets")
    ready_and_due, buffered, running = row("jobs")
    oldest = row("oldest")[0]
    if bounds.replica_handlers:
        handlers = bounds.replica_handlers
    elif live:
        handlers //= live
    else:
        last = row("last")
        handlers = max_workers or (last[0] if last else _USUAL_HANDLERS)
    return ScaleFigures(
        live=live,
        settled=max(settled, min(live, 1)),
        replica_handlers=max(handlers, 1),
        paused=bool(paused),
        active=bool(active),
        open_circuits=row("circuits")[0],
        fleet_cap=bounds.fleet_cap if cap is None else cap,
        due=min(ready_and_due, _COUNTED),
        oldest_due_ms=None if oldest is None else max(now - oldest, 0),
        buffered=buffered,
        running=running,
        busy_handlers=up(spent, WINDOW_MS),
        mean_run_ms=max(up(run, finished), 1) if finished else None,
        late=late,
    )
