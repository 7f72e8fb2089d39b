"""Metrics for Prometheus: what is counted (catalogue), and how the processes of a worker become one exposition."""
