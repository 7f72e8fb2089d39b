"""What an operator may do: bounds, actor and reason around the store. The CLI and The Deck call these, never the store."""

from chokaq.operations.actor import By, Role, by, default_actor, require_operator, require_reason
from chokaq.operations.audit import AuditPage, list_audit
from chokaq.operations.circuit_history import CircuitHistory, list_circuit_events
from chokaq.operations.circuits import CircuitStatus, force_circuit, list_circuits
from chokaq.operations.confirm import Action, Confirmation, confirm_jobs, confirm_queue
from chokaq.operations.connect import connected, doorbell, find_store
from chokaq.operations.databases import Databases, Opened
from chokaq.operations.edits import PayloadCheck, check_edits, edit_job
from chokaq.operations.errors import NotAllowed, OperationError
from chokaq.operations.filters import dlq_filter, job_filter
from chokaq.operations.jobs import JobDetail, cancel_jobs, list_jobs, list_stopped, show_job
from chokaq.operations.queues import (
    QueueDetail,
    activate_queue,
    deactivate_queue,
    list_queues,
    pause_queue,
    resume_queue,
    set_queue,
    show_queue,
)
from chokaq.operations.repair import Preview, Repaired, drop_jobs, preview_jobs, purge_jobs, resurrect_jobs
from chokaq.operations.risks import StoppedJob, resurrection_risks, show_stopped
from chokaq.operations.scaling import ScaleBounds, ScaleView, explain_scale, recommend_scale
from chokaq.operations.schema import SchemaState, apply_schema, check_schema, schema_script, schema_version
from chokaq.operations.status import QueueStatus, Rates, Status, read_status
from chokaq.operations.workers import drain_worker, list_workers

__all__ = [
    "Action",
    "AuditPage",
    "By",
    "CircuitHistory",
    "CircuitStatus",
    "Confirmation",
    "Databases",
    "JobDetail",
    "NotAllowed",
    "Opened",
    "OperationError",
    "PayloadCheck",
    "Preview",
    "QueueDetail",
    "QueueStatus",
    "Rates",
    "Repaired",
    "Role",
    "ScaleBounds",
    "ScaleView",
    "SchemaState",
    "Status",
    "StoppedJob",
    "activate_queue",
    "apply_schema",
    "by",
    "cancel_jobs",
    "check_edits",
    "check_schema",
    "confirm_jobs",
    "confirm_queue",
    "connected",
    "deactivate_queue",
    "default_actor",
    "dlq_filter",
    "doorbell",
    "drain_worker",
    "drop_jobs",
    "edit_job",
    "explain_scale",
    "find_store",
    "force_circuit",
    "job_filter",
    "list_audit",
    "list_circuit_events",
    "list_circuits",
    "list_jobs",
    "list_queues",
    "list_stopped",
    "list_workers",
    "pause_queue",
    "preview_jobs",
    "purge_jobs",
    "read_status",
    "recommend_scale",
    "require_operator",
    "require_reason",
    "resume_queue",
    "resurrect_jobs",
    "resurrection_risks",
    "schema_script",
    "schema_version",
    "set_queue",
    "show_job",
    "show_queue",
    "show_stopped",
]
