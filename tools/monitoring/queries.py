"""PromQL that several panels need, within what the dashboard's variables choose."""

from tools.monitoring.panels import Query

SPACE = 'namespace=~"$namespace"'
JOB = f'{SPACE}, job=~"$job"'
QUEUE = f'{JOB}, queue=~"$queue"'
APPLICATION = f'{SPACE}, queue=~"$queue"'
"""Of what applications count: their job is not a worker's."""
_NOT_CANCELLED = 'reason!="Cancelled"'


def rate(counter: str, *labels: str, within: str = QUEUE) -> str:
    """How fast a counter rises per second, by these labels."""
    return _summed(f"rate({counter}{{{within}}}[$__rate_interval])", labels)


def rise(counter: str, *labels: str, within: str = QUEUE) -> str:
    """By how much it has risen since the point before."""
    return _summed(f"increase({counter}{{{within}}}[$__rate_interval])", labels)


def total(gauge: str, *labels: str, within: str = QUEUE) -> str:
    """A gauge of all workers together."""
    return _summed(f"{gauge}{{{within}}}", labels)


def fleet(gauge: str, state: str = "") -> str:
    """A gauge of the fleet's leader, by queue; two workers may tell it while the lead changes hands."""
    more = f', state="{state}"' if state else ""
    return f"max by (queue) ({gauge}{{{QUEUE}{more}}})"


def ratio(part: str, whole: str) -> str:
    """A share, where there is something to share."""
    return f"{part} / ({whole} > 0)"


def quantile(part: float, histogram: str, *labels: str, within: str = QUEUE) -> str:
    """The value that this part of the observations stays below, by these labels."""
    return f"histogram_quantile({part}, {rate(f'{histogram}_bucket', *labels, 'le', within=within)})"


def quantiles(histogram: str) -> tuple[Query, ...]:
    """Half, 95 and 99 of a hundred, over all that is chosen."""
    return tuple((quantile(part, histogram), f"p{round(part * 100)}") for part in (0.5, 0.95, 0.99))


def share_within(histogram: str, bound: str) -> str:
    """The share of the observations up to a bound, by queue."""
    inside = rate(f"{histogram}_bucket", "queue", within=f'{QUEUE}, le="{bound}"')
    return ratio(inside, rate(f"{histogram}_count", "queue"))


def dead_share(*labels: str) -> str:
    """The share of the jobs that ended in the DLQ by nobody's will."""
    dead = rate("chokaq_jobs_dlq_total", *labels, within=f"{QUEUE}, {_NOT_CANCELLED}")
    return ratio(dead, f"({dead} + {rate('chokaq_jobs_completed_total', *labels)})")


def _summed(expression: str, labels: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(labels)}) ({expression})" if labels else f"sum({expression})"
