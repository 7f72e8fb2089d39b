"""A stopped job from the DLQ to its next run, with the commands and the embedded store."""

from pathlib import Path

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.support.holder import Holder
from tests.support.jobs import new_jobs, worker_info
from tests.support.stopped import fail

from .conftest import Cli


def test_a_stopped_job_is_found_mended_resurrected_and_audited(cli: Cli, folder: Path) -> None:
    cli("schema", "apply")
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder}/chokaq.db")).session()
    jobs = fail(session, new_jobs(4))
    assert cli("dlq", "preview", "--search", "HUNG UP", "--json").json["matched"] == 4
    assert len(cli("dlq", "list", "--failure", "FatalError", "--json").json["jobs"]) == 4
    assert "the mail server hung up" in cli("dlq", "show", jobs[0]).out
    cli("dlq", "edit", jobs[0], "--payload", '{"to": "b@c"}', "--actor", "anna", "-r", "typo")
    cli("dlq", "resurrect", jobs[0], "--priority", "77", "--actor", "anna", "-r", "mended")
    cli("dlq", "drop", jobs[1], "-r", "obsolete", "--yes")
    cli("dlq", "purge", jobs[2], "--yes")
    (run,) = Holder(session).fetch(1).jobs
    assert (run.id, run.payload, run.priority) == (jobs[0], '{"to": "b@c"}', 77)
    assert [entry["reason"] for entry in cli("audit", jobs[0], "--json").json["entries"]] == ["mended", "typo"]
    left = {job["id"]: job["status"] for job in cli("dlq", "list", "--json").json["jobs"]}
    assert left == {jobs[1]: "Dropped", jobs[3]: "Failed"}
    assert cli("dlq", "resurrect", "--all", "--yes", "--json").json["counts"]["accepted"] == 1
    assert [job["id"] for job in cli("jobs", "list", "--status", "pending", "--json").json["jobs"]] == [jobs[3]]
    worker = session.register_worker(worker_info("emails")).worker_id
    assert cli("workers", "drain", worker).out == f"{worker} told to drain\n"
    session.close()
