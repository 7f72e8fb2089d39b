"""What the dashboard shows, row by row. Every panel says in its description what it is for; alerts stand in deploy/prometheus."""

from collections.abc import Sequence

from tools.monitoring.panels import Panel
from tools.monitoring.rows import jobs, overview, store, workers

ROWS: Sequence[tuple[str, Sequence[tuple[int, int, Panel]]]] = (
    ("Overview", overview.OVERVIEW),
    ("Lag", jobs.LAG),
    ("Throughput and failures", jobs.THROUGHPUT),
    ("Retries", jobs.RETRIES),
    ("Durations", jobs.DURATIONS),
    ("Workers and restarts", workers.WORKERS),
    ("Store", store.STORE),
    ("Circuits", store.CIRCUITS),
    ("Process health", workers.PROCESSES),
)
"""A title, and panels with their width and height on the grid."""
