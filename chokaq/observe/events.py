"""Every event that chokaq logs: its name, its number, its level and what it says.

Names and numbers are a promise to those who filter and alert by them: neither ever changes, and a number that is given up is not
given again. The blocks: 1000 processes, 2000 jobs, 3000 enqueueing, 4000 rescue and the fleet, 5000 the store, 6000 operators.
"""

from typing import NamedTuple


class Event(NamedTuple):
    """One entry of the catalogue."""

    number: int
    """`event_id` of the line."""
    level: str
    """debug, info, warning or error."""
    meaning: str
    """One sentence for the operator."""
    reserved: str | None = None
    """Why nobody logs it; None: it is logged."""


_NO_PUSH = "chokaq pushes nothing to anybody when a job moves: The Deck asks the database, so there is nothing to fail"

EVENTS: dict[str, Event] = {
    # 1000: a worker process (one child of a queue)
    "worker_started": Event(1000, "info", "A worker has imported the application, reached the store and claims jobs."),
    "worker_stopped": Event(1001, "info", "A worker has drained; says what it did since it started."),
    "loop_crashed": Event(1002, "error", "A process ends because of a defect in its own code; the traceback follows."),
    "loop_stopped_unexpectedly": Event(1003, "error", "A lane of a worker ended without being asked; the worker ends."),
    "capacity_changed": Event(1004, "info", "A worker runs more or fewer handlers at once from now on."),
    "buffered_job_released": Event(1010, "debug", "A job that had not begun has gone back to its queue, uncharged."),
    "buffered_job_release_failed": Event(
        1011, "error", "The store refused to take such a job back; it goes to the DLQ."
    ),
    "drain_started": Event(1012, "info", "The supervisor has told a child to finish what it runs and end."),
    "handler_saw_shutdown": Event(
        1013, "debug", "A running handler is cancelled: the grace of the drain is nearly over."
    ),
    "task_failed": Event(1014, "error", "A task of a worker failed by a defect of chokaq; the worker ends."),
    "worker_shutdown_timed_out": Event(1015, "warning", "A child has not ended within its grace; it is killed."),
    "drain_timed_out": Event(1016, "warning", "Handlers still run near the end of the grace; they are cancelled."),
    "draining": Event(1020, "info", "A worker claims no more, hands back its buffer and lets its handlers end."),
    "drain_asked": Event(1021, "info", "An operator has asked for this worker to be replaced."),
    "worker_retired": Event(
        1022, "warning", "Maintenance took this worker for dead; it ends, another takes its place."
    ),
    "orphaned": Event(1023, "warning", "The supervisor is gone; its child drains by itself and ends."),
    "queue_settings_changed": Event(1024, "info", "An operator's overrides of the queue have reached a worker."),
    "max_workers_too_high": Event(
        1025, "warning", "An override asks for more handlers than this child can show or run."
    ),
    "services_close_overdue": Event(
        1026, "error", "Closing the application's services took too long; it was cancelled."
    ),
    "services_close_failed": Event(1027, "error", "Closing the application's services raised."),
    "services_close_blocked": Event(
        1028, "error", "Closing the application's services blocked the loop; the child leaves."
    ),
    "doorbell_unavailable": Event(1029, "warning", "A worker cannot be woken by commits on its host; it polls."),
    "fetch_refused": Event(1030, "error", "The store refused a claim; the worker asks again in some seconds."),
    "log_level_changed": Event(1031, "info", "A process logs at another level from now on."),
    "tracing_started": Event(1032, "info", "A worker records spans; says where they go."),
    "spans_lost": Event(1033, "warning", "Spans could not be handed over before the process ended."),
    # 1100: the supervisor and the processes it forks
    "supervisor_started": Event(1100, "info", "The supervisor forks its processes."),
    "supervisor_ready": Event(1101, "info", "Every queue has a live child that reaches the store."),
    "supervisor_not_ready": Event(
        1102, "warning", "A queue has no live child, or the store does not answer; says which."
    ),
    "supervisor_failed": Event(1103, "error", "A defect of the supervisor; it drains its children and ends."),
    "supervisor_stood_still": Event(
        1104, "warning", "The supervisor itself was stopped for a while; it judges nobody."
    ),
    "preloaded": Event(1105, "debug", "What every child needs has been imported before the first fork."),
    "signal": Event(1106, "info", "The supervisor has got a signal."),
    "signal_ignored": Event(1107, "info", "A signal was ignored: the program is stopping."),
    "stopping": Event(1108, "info", "The program drains its children; says why and for how long at most."),
    "stopped": Event(1109, "info", "The program has ended; says its exit code."),
    "second_signal": Event(1110, "warning", "A second TERM or INT: what still runs is killed."),
    "cannot_boot": Event(1111, "error", "The program stops: a child cannot boot."),
    "reloaded": Event(1112, "info", "HUP: the settings of now hold; says which children are replaced."),
    "reload_refused": Event(1113, "warning", "HUP: the new settings are wrong; the old ones go on."),
    "restarting": Event(1114, "info", "USR2: every child is replaced, one at a time."),
    "restart_refused": Event(
        1115, "warning", "USR2: the application cannot be imported any more; the old children go on."
    ),
    "process_added": Event(1116, "info", "TTIN: a queue has one process more."),
    "process_removed": Event(1117, "info", "TTOU: a queue has one process less."),
    "process_not_removed": Event(1118, "info", "TTOU: no queue has a process to spare."),
    "rollout_stopped": Event(1119, "error", "A replacement did not become ready; the old children stay."),
    "child_forked": Event(1130, "info", "A child has been forked."),
    "child_ready": Event(1131, "info", "A child works; says how long its boot took."),
    "child_died": Event(1132, "info", "A child has ended; says how, and why as far as it is known."),
    "child_killed": Event(1133, "warning", "The supervisor has killed a child; says why and which jobs are to blame."),
    "child_cannot_boot": Event(1134, "error", "A child cannot boot; it is tried again, the others go on."),
    "child_leaves": Event(1135, "warning", "A child leaves by itself; its place is filled at once."),
    "child_stalled": Event(1136, "error", "The loop of a child has not turned for stall_limit; it is killed."),
    "hard_limit": Event(
        1137, "error", "Handlers ignore their timeout and their cancellation; their child is replaced."
    ),
    "boot_timeout": Event(1138, "error", "A booting child has taken no step for boot_timeout; it is killed."),
    "fork_failed": Event(1139, "warning", "The host gave no process; it is tried again."),
    "replacement_started": Event(1140, "info", "The successor of a child has been forked."),
    "replacement_failed": Event(1141, "error", "The successor of a child did not become ready; the old one stays."),
    "recycle_waits": Event(1142, "warning", "A child is due for recycling, but its predecessors still run."),
    "drain_hurried": Event(1143, "info", "A child that was leaving in its own time has a grace now."),
    "status_board_full": Event(1144, "error", "The status board has no slot for another child."),
    "orphan_reaped": Event(1145, "debug", "A process that became ours as PID 1 has ended."),
    "maintenance_forked": Event(1150, "info", "The maintenance process has been forked."),
    "maintenance_ready": Event(1151, "info", "The maintenance process reaches the store."),
    "maintenance_died": Event(1152, "info", "The maintenance process has ended; it is replaced unless all is ending."),
    "maintenance_killed": Event(1153, "warning", "The supervisor has killed the maintenance process."),
    "maintenance_cannot_boot": Event(1154, "error", "The maintenance process cannot boot; it is tried again."),
    "notice_acknowledged": Event(1155, "info", "The jobs of a dead worker have been released."),
    "web_forked": Event(1160, "info", "The web process has been forked."),
    "web_ended": Event(1161, "info", "The web process has ended as it was told."),
    "web_died": Event(1162, "error", "The web process has died; it is replaced, the workers go on."),
    "web_killed": Event(1163, "warning", "The web process did not end in time; it was killed."),
    "web_stalled": Event(1164, "error", "The web process has answered nobody for long; it was killed and is replaced."),
    "probes_listening": Event(1165, "info", "The probe port is open; says where."),
    "probes_cannot_listen": Event(1166, "warning", "The probe port could not be opened; it is tried again."),
    "probe_failed": Event(1167, "error", "An answer to a probe failed by a defect; the traceback follows."),
    "probe_connection_failed": Event(1168, "error", "A connection to the probe port failed by a defect."),
    "probe_database_failed": Event(1169, "warning", "The database did not answer the question of /healthz."),
    "probe_database_answers": Event(1170, "info", "The database answers the question of /healthz again."),
    "metrics_off": Event(1180, "warning", "No figures can be written, so none are counted; says why and the way out."),
    "metrics_file_full": Event(
        1181, "warning", "A process has no room for more series; what it counted before goes on."
    ),
    "metrics_not_folded": Event(1182, "warning", "The figures of a process that has ended could not be added up."),
    "metrics_without_capacity": Event(1183, "warning", "The leader cannot read how many handlers the fleet has."),
    "metrics_without_operators": Event(1184, "warning", "The leader cannot read what operators did to jobs."),
    "metrics_without_types": Event(1185, "warning", "Rescued jobs are counted without their types."),
    "metrics_need_restart": Event(1186, "warning", "A reload cannot switch metrics on or off, nor move their folder."),
    # 2000: jobs, as the store has answered
    "cancellation_requested": Event(2000, "info", "A worker has been told to cancel a job it holds."),
    "circuit_rejected": Event(2001, "debug", "A job went back, uncharged: the circuit of its type is open."),
    "lease_rejected": Event(2002, "info", "A job was not started here: somebody else owns it, or it was cancelled."),
    "job_succeeded": Event(2003, "debug", "A job has been archived."),
    "job_rescheduled_by_shutdown": Event(
        2004, "info", "A handler was stopped by a drain; its job went back, uncharged."
    ),
    "job_timed_out": Event(2005, "warning", "A job is in the DLQ: its handler ran longer than its execution timeout."),
    "heartbeat_failed": Event(2006, "warning", "Leases were due for renewal and the store has not answered."),
    "heartbeat_threshold_reached": Event(2007, "error", "So many renewals failed that the handlers are cancelled."),
    "heartbeat_degraded": Event(2008, "warning", "So many renewals failed that it is reported; the handlers go on."),
    "handler_raised": Event(2010, "debug", "A handler has raised; what becomes of its job follows."),
    "job_released": Event(2011, "debug", "A job went back, uncharged, after its handler had begun (a snooze)."),
    "job_cancelled": Event(2012, "info", "A job has ended Cancelled; says by whom and why."),
    "job_expired": Event(2013, "warning", "A job is in the DLQ: it would have run again after its max_job_age."),
    "job_heartbeat_lost": Event(2014, "warning", "A job is in the DLQ: its lease could not be renewed for too long."),
    "unknown_type": Event(2015, "warning", "A job went back, uncharged: this worker has no handler for its type."),
    "job_fatal": Event(2020, "warning", "A job is in the DLQ at once: its error is one that no retry mends."),
    "job_throttled": Event(2021, "info", "A job is retried after the delay that its dependency asked for."),
    "job_retried": Event(2022, "info", "A job is retried after a transient failure."),
    "job_exhausted": Event(2023, "warning", "A job is in the DLQ: its attempts are spent."),
    "circuit_opened": Event(2030, "warning", "The circuit of a type is open: its jobs wait."),
    "circuit_half_opened": Event(2031, "info", "The circuit of a type tries a job."),
    "circuit_closed": Event(2032, "info", "The circuit of a type is closed again."),
    "circuit_probe_expired": Event(2033, "warning", "A tried job has not ended in time; another one is tried."),
    "circuit_forced": Event(
        2034, "warning", "An operator holds the circuit of a type open or closed, or has let it go."
    ),
    "circuit_orders_refused": Event(2035, "error", "The store refused to tell the orders over circuits."),
    "circuit_report_refused": Event(2036, "error", "The store refused a report about circuits."),
    "duplicate_skipped": Event(2040, "debug", "A job succeeded without running: its idempotency key's work is done."),
    "result_not_kept": Event(2041, "warning", "What a handler returned cannot be kept with its idempotency key."),
    "run_key_lost": Event(2042, "warning", "An idempotency key went to another job while its work was under way."),
    "run_key_refused": Event(2043, "error", "The store refused to complete or release an idempotency key."),
    "run_keys_refused": Event(2044, "error", "The store refused to renew idempotency keys."),
    "classifier_failed": Event(2050, "error", "The application's own classifier raised; the built-in rules judged."),
    "progress_refused": Event(
        2051, "warning", "The store refused the handlers' progress; leases are renewed without it."
    ),
    "heartbeat_refused": Event(2052, "error", "The store refused to renew leases."),
    "transition_not_applied": Event(2100, "info", "An outcome came to nothing: somebody else owns the job by now."),
    "transition_refused": Event(2101, "error", "The store refuses a job's outcome; it goes to the DLQ with the error."),
    "job_left_to_its_lease": Event(
        2102, "error", "Not even that was accepted: the job comes back when its lease runs out."
    ),
    "notification_failed": Event(2110, "error", "An outcome could not be announced.", _NO_PUSH),
    # 3000: enqueueing, in the application's process
    "duplicate_enqueued": Event(3000, "debug", "An enqueue found a job that holds its idempotency key."),
    "enqueue_notification_failed": Event(
        3001, "debug", "Nobody on this host could be woken for a new job; it is polled."
    ),
    # 4000: rescue and the fleet
    "rescue_started": Event(4000, "debug", "The leader looks for jobs whose lease has run out."),
    "abandoned_recovered": Event(4001, "warning", "Buffered jobs whose lease had run out are waiting again."),
    "zombies_archived": Event(4002, "warning", "Running jobs whose lease had run out have met the crash policy."),
    "maintenance_refused": Event(4003, "error", "The store refused a step of maintenance; the next one goes on."),
    "leadership": Event(4010, "info", "This process has taken, or lost, the lead of the fleet's maintenance."),
    "judging_postponed": Event(
        4011, "info", "The leader judges nobody for a while: heartbeats may be old without fault."
    ),
    "silent_worker_ended": Event(4012, "warning", "A worker was silent for too long; it counts as dead."),
    "worker_released": Event(4013, "info", "What a dead worker held has gone back, or to the DLQ; says how many."),
    "release_refused": Event(4014, "error", "The store refused to release a dead worker; it is tried again."),
    "own_row_not_ended": Event(4015, "info", "Maintenance ended without ending its own row of the registry."),
    # 5000: the store
    "schema_apply_started": Event(5000, "info", "The database is being brought to this program's schema."),
    "schema_applied": Event(5001, "info", "It is; says what was applied."),
    "schema_apply_failed": Event(5002, "error", "It is not; says why."),
    "schema_script_failed": Event(5003, "error", "A statement of a schema script failed; says of which."),
    "store_unavailable": Event(5010, "warning", "The store does not answer; the call is repeated until it does."),
    "store_available": Event(5011, "warning", "The store answers again; says how long it was away."),
    "session_close_failed": Event(5012, "debug", "A broken connection could not be closed; it is thrown away."),
    # 6000: operators, and The Deck
    "command_rejected": Event(6000, "warning", "An operator's command was refused; says which, whose and why."),
    "command_completed": Event(6001, "info", "An operator's command has been carried out; says which and whose."),
    "deck_ready": Event(6010, "info", "The Deck is served; says where."),
    "deck_open": Event(6011, "warning", "The Deck asks nobody who they are."),
    "deck_signed_in": Event(6012, "info", "Somebody has signed in to The Deck."),
    "deck_signed_out": Event(6013, "info", "Somebody has signed out of The Deck."),
    "deck_refused": Event(6014, "warning", "The Deck has refused a request; says whose and why."),
    "deck_api_failed": Event(6015, "error", "A request to The Deck's API met a defect."),
    "deck_page_unread": Event(6016, "debug", "Figures for an open page could not be read."),
    "deck_page_failed": Event(6017, "error", "Figures for an open page met a defect."),
    "deck_look_failed": Event(6018, "error", "The Deck's look at the database met a defect."),
    "deck_database_back": Event(6019, "info", "The Deck's database answers again."),
    "deck_database_away": Event(6020, "warning", "The Deck's database does not answer; pages show what they had."),
    "deck_action_failed": Event(6021, "error", "An action of a page met a defect."),
    "deck_sign_out_untold": Event(
        6022, "warning", "A sign-out could not be told to the other processes of The Deck; it is tried again."
    ),
}
