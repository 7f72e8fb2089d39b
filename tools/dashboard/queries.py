"""PromQL that several panels need, within what the dashboard's variables choose."""

from tools.dashboard.panels import Query

SPACE = 'namespace=~"$namespace", queue=~"$queue"'
"""Of what applications count: their job is not a worker's."""
JOB = 'namespace=~"$namespace", job=~"$job"'
QUEUE = f'{JOB}, queue=~"$queue"'


def per_second(counter: str, label: str) -> str:
    """How fast a counter rises, by one label."""
    return f"sum by ({label}) (rate({counter}{{{QUEUE}}}[$__rate_interval]))"


def quantile(part: float, histogram: str, label: str) -> str:
    """The value that this part of the observations stays below, by one label."""
    return f"histogram_quantile({part}, sum by ({label}, le) (rate({histogram}_bucket{{{QUEUE}}}[$__rate_interval])))"


def quantiles(histogram: str) -> tuple[Query, ...]:
    """Half, 95 and 99 of a hundred, over all that is chosen."""
    rate = f"sum by (le) (rate({histogram}_bucket{{{QUEUE}}}[$__rate_interval]))"
    return tuple((f"histogram_quantile({part}, {rate})", f"p{round(part * 100)}") for part in (0.5, 0.95, 0.99))


def share_within(histogram: str, bound: str) -> str:
    """The share of the observations up to a bound, by queue."""
    inside = f'sum by (queue) (rate({histogram}_bucket{{{QUEUE}, le="{bound}"}}[$__rate_interval]))'
    return f"{inside} / (sum by (queue) (rate({histogram}_count{{{QUEUE}}}[$__rate_interval])) > 0)"
