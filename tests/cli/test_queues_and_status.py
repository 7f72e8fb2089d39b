"""`chokaq queues`, `workers` and `status`."""

from pathlib import Path

import pytest

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import CrashPolicies, DeathNotice, Held
from tests.support.jobs import worker_info

from .conftest import Cli, enqueue


def test_a_queue_is_paused_set_and_cleared(cli: Cli) -> None:
    enqueue(cli)
    assert cli("queues", "pause", "emails", "-r", "storm", "--json").json["live"]["paused"] is True
    assert "paused" in cli("queues", "list").out
    assert cli("queues", "resume", "emails", "--json").json["live"]["paused"] is False
    assert cli("queues", "deactivate", "emails", "--yes", "--json").json["live"]["active"] is False
    assert cli("queues", "activate", "emails", "--json").json["live"]["active"] is True
    view = cli(
        "queues", "set", "emails", "--max-workers", "3", "--zombie-timeout", "40m", "--actor", "anna", "--json"
    ).json
    assert (view["live"]["max_workers"], view["live"]["zombie_timeout_ms"], view["updated_by"]) == (
        3,
        2_400_000,
        "anna",
    )
    view = cli("queues", "set", "emails", "--clear", "max-workers", "--fleet-max-workers", "9", "--json").json
    assert (view["live"]["max_workers"], view["live"]["fleet_max_workers"]) == (None, 9)
    assert "40m" in cli("queues", "list").out
    assert [queue["name"] for queue in cli("queues", "list", "--json").json["queues"]] == ["emails"]


def test_a_queue_is_shown_with_what_each_priority_waits(cli: Cli, folder: Path) -> None:
    """C42, C4: by priority, and how long the longest job runs."""
    enqueue(cli, "--priority", "50")
    enqueue(cli)
    assert "began" not in cli("queues", "show", "emails").out
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder}/chokaq.db")).session()
    worker = session.register_worker(worker_info("emails"))
    [job] = session.fetch_jobs(worker, 1, 1).jobs
    session.start_jobs(worker, [Held(job.id, job.lease)])
    session.close()
    enqueue(cli, "--priority", "5")
    enqueue(cli, "--priority", "5")

    shown = cli("queues", "show", "emails", "--json").json
    assert [(view["priority"], view["waiting"]) for view in shown["priorities"]] == [(10, 1), (5, 2)]
    assert shown["queue"]["oldest_running_ms"] >= 0
    out = cli("queues", "show", "emails").out
    assert "The longest of the jobs that run began" in out
    assert [line.split()[:2] for line in out.splitlines() if line.split()[:1] in (["10"], ["5"])] == [
        ["10", "1"],
        ["5", "2"],
    ]
    assert "did you mean emails?" in cli("queues", "show", "email", code=1).err


def test_a_queues_scale_is_recommended_with_its_reason(cli: Cli, folder: Path) -> None:
    assert cli("queues", "scale", "emails", "--json").json["replicas"] == 0
    enqueue(cli)
    asked = cli("queues", "scale", "emails")
    assert "emails wants 1 replica; 0 live." in asked.out
    assert "Nobody serves the queue, and 1 of its jobs are due or held." in asked.out
    assert "Never fewer, by the minimum" in cli("queues", "scale", "emails", "--min", "3").out
    cli("queues", "pause", "emails", "-r", "storm")
    held = cli("queues", "scale", "emails", "--unit", "process", "--target-lag", "1m")
    assert "emails wants 0 processes; 0 live.\nThe present number is kept: the queue is paused." in held.out


def test_the_fleet_cap_of_the_configuration_counts(cli: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("queues: {emails: {fleet_max_workers: 7}}\n")
    assert cli("queues", "scale", "emails", "--json").json["fleet_cap"] == 7
    cli("queues", "set", "emails", "--fleet-max-workers", "3", "--create")
    assert cli("queues", "scale", "emails", "--json").json["fleet_cap"] == 3


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--min", "5", "--max", "2"], 1, "0 ≤ min_replicas ≤ max_replicas ≤ 10,000, got 5 and 2"),
        (["--target-lag", "soon"], 2, "must be a duration like 90s"),
        (["--busy", "40"], 1, "idle_percent < busy_percent"),
        (["--unit", "pod"], 2, "'pod' is not one of 'replica', 'process'"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_with_the_way_out(
    cli: Cli, options: list[str], code: int, message: str
) -> None:
    assert message in " ".join(cli("queues", "scale", "emails", *options, code=code).err.replace("│", "").split())


def test_a_zombie_timeout_is_held_against_the_heartbeat_that_the_configuration_gives_the_queue(
    cli: Cli, folder: Path
) -> None:
    (folder / "chokaq.yaml").write_text("queues: {emails: {heartbeat: 30s}}\n")
    enqueue(cli)
    ran = cli("queues", "set", "emails", "--zombie-timeout", "60s", code=1)
    assert "under three heartbeats of its workers (30 s each by the configuration)" in ran.err
    assert cli("queues", "list", "--json").json["queues"][0]["live"]["zombie_timeout_ms"] is None
    assert (
        cli("queues", "set", "emails", "--zombie-timeout", "90s", "--json").json["live"]["zombie_timeout_ms"] == 90_000
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pause", "email"], 1, "there is no queue 'email' here; did you mean emails?"),
        (["deactivate", "emails"], 1, "'deactivate emails' has to be confirmed and there is nobody to ask"),
        (["deactivate", "email", "--yes"], 1, "did you mean emails?"),
        (["set", "emails"], 1, "nothing to set"),
        (["set", "emails", "--max-workers", "0"], 1, "max_workers must be a whole number from 1 to 10,000, got 0"),
        (["set", "emails", "--max-workers", "x"], 2, "Invalid value for '--max-workers'"),
        (["set", "emails", "--execution-timeout", "x"], 2, "must be a duration"),
        (["set", "emails", "--execution-timeout", "2d"], 1, "execution_timeout must be from 1 s"),
        (["set", "emails", "--clear", "max-workers", "--max-workers", "1"], 2, "both set and cleared"),
        (["set", "emails", "--clear", "name"], 2, "Invalid value for"),
    ],
)
def test_a_wrong_change_of_a_queue_is_one_clear_message(
    cli: Cli, arguments: list[str], code: int, message: str
) -> None:
    enqueue(cli)
    ran = cli("queues", *arguments, code=code)
    assert message in ran.err
    assert ran.out == ""


def test_a_queue_with_jobs_and_no_worker_is_reported_and_ends_with_1(cli: Cli) -> None:
    enqueue(cli)
    ran = cli("status", code=1)
    assert "The queue emails holds 1 job but has no live worker anywhere" in ran.out
    found = cli("status", "--json", code=1).json
    assert found["queues"][0]["queue"]["pending"] == 1
    assert len(found["problems"]) == 1


def test_with_a_worker_all_is_well_and_workers_lists_it(cli: Cli, folder: Path) -> None:
    enqueue(cli)
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder}/chokaq.db")).session()
    for queue in ("emails", ""):
        session.register_worker(worker_info(queue))
    session.close()
    assert "Nothing is wrong." in cli("status").out
    listed = cli("workers", "--json").json["workers"]
    assert {worker["queue"] for worker in listed} == {"emails", ""}
    assert cli("workers", "list", "--json").json.keys() == {"workers"}
    for out in (cli("workers").out, cli("workers", "list").out):
        assert "maintenance" in out
        assert all(worker["worker_id"] in out for worker in listed)


def test_ended_workers_are_listed_when_asked_for_before_or_behind_the_command(cli: Cli, folder: Path) -> None:
    cli("schema", "apply")
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder}/chokaq.db")).session()
    me, other = (session.register_worker(worker_info(queue)) for queue in ("", "emails"))
    session.release_worker(me, DeathNotice(worker_id=other.worker_id, queue="emails", cause="crash"), CrashPolicies())
    session.close()
    for command, count in (
        (["workers"], 1),
        (["workers", "--ended"], 2),
        (["workers", "list"], 1),
        (["workers", "list", "--ended"], 2),
        (["workers", "--ended", "list"], 2),
    ):
        assert len(cli(*command, "--json").json["workers"]) == count, command


def test_an_empty_store_says_so(cli: Cli) -> None:
    cli("schema", "apply")
    assert "No queues yet" in cli("status").out
    assert "No queues yet" in cli("queues", "list").out
    assert "No workers" in cli("workers").out
    assert "No such jobs" in cli("jobs", "list").out
