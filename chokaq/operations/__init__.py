"""What an operator may do: bounds, actor and reason around the store. The CLI and The Deck call these, never the store."""

from chokaq.operations.actor import By, by, default_actor
from chokaq.operations.circuits import CircuitStatus, force_circuit, list_circuits
from chokaq.operations.connect import connected, find_store
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import JobDetail, cancel_jobs, job_filter, list_jobs, show_job
from chokaq.operations.queues import (
    activate_queue,
    deactivate_queue,
    list_queues,
    pause_queue,
    resume_queue,
    set_queue,
)
from chokaq.operations.schema import SchemaState, apply_schema, check_schema, schema_script, schema_version
from chokaq.operations.status import QueueStatus, Rates, Status, read_status
from chokaq.operations.workers import list_workers

__all__ = [
    "By",
    "CircuitStatus",
    "JobDetail",
    "OperationError",
    "QueueStatus",
    "Rates",
    "SchemaState",
    "Status",
    "activate_queue",
    "apply_schema",
    "by",
    "cancel_jobs",
    "check_schema",
    "connected",
    "deactivate_queue",
    "default_actor",
    "find_store",
    "force_circuit",
    "job_filter",
    "list_circuits",
    "list_jobs",
    "list_queues",
    "list_workers",
    "pause_queue",
    "read_status",
    "resume_queue",
    "schema_script",
    "schema_version",
    "set_queue",
    "show_job",
]
