"""Recycling, rolling restart, reload, and processes added or taken away: capacity is kept (C17, C18)."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from .conftest import Start
from .harness import FakeProgram

pytestmark = pytest.mark.processes
LIMITS = "supervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}\n"
TWO = "queues: {alpha: {}, beta: {processes: 2}}\n" + LIMITS


def order(program: FakeProgram) -> list[tuple[str, str, int]]:
    """What happened to children, in order."""
    kept = ("child_ready", "drain_started", "child_died")
    return [(event["event"], event["child"], event["pid"]) for event in program.events() if event["event"] in kept]


def assert_replaced_with_capacity_kept(program: FakeProgram, name: str) -> None:
    """The new child was ready before the old one was told to go."""
    steps = [(what, pid) for what, child, pid in order(program) if child == name]
    first, second = (pid for what, pid in steps if what == "child_ready")
    assert steps.index(("child_ready", second)) < steps.index(("drain_started", first))


def test_a_child_that_an_operator_drains_is_replaced_before_it_leaves(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    [drained] = program.events("child_ready", child="beta#1")
    program.script("beta", replace=True, only_pid=drained["pid"])
    program.wait("child_died")
    assert_replaced_with_capacity_kept(program, "beta#1")
    # Its successor is another worker, whom nobody asked to go.
    assert [event["pid"] for event in program.events("child_died")] == [drained["pid"]]
    assert len(program.events("child_forked")) == 4
    assert not program.events("supervisor_not_ready")
    assert program.end() == 0


def test_usr2_replaces_every_child_one_at_a_time_and_keeps_the_capacity(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.send(signal.SIGUSR2)
    program.wait("child_died", 3)
    for name in ("alpha#0", "beta#0", "beta#1"):
        assert_replaced_with_capacity_kept(program, name)
    started = [event["event"] for event in program.events() if event["event"] in ("replacement_started", "child_died")]
    assert started == ["replacement_started", "child_died"] * 3
    assert not program.events("supervisor_not_ready")
    assert program.end() == 0


def test_a_rolling_restart_whose_replacement_cannot_boot_keeps_the_old_children(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.script("alpha", boot="fail")
    program.script("beta", boot="fail")
    program.send(signal.SIGUSR2)
    program.wait("rollout_stopped")
    assert len(program.events("replacement_failed")) == 1
    assert not program.events("drain_started")
    program.script("alpha")
    program.script("beta")
    program.send(signal.SIGUSR2)
    program.wait("child_died", 4)
    assert program.end() == 0


def test_hup_changes_only_the_children_whose_settings_changed(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.configure(TWO.replace("alpha: {}", "alpha: {max_workers: 3}"))
    program.send(signal.SIGHUP)
    program.wait("child_died")
    assert_replaced_with_capacity_kept(program, "alpha#0")
    [reloaded] = program.events("reloaded")
    assert reloaded["replaced"] == ["alpha#0"]
    assert len(program.events("child_forked", queue="beta")) == 2
    program.wait("maintenance_ready", 2)
    assert program.end() == 0


def test_hup_opens_new_queues_closes_old_ones_and_follows_the_number_of_processes(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.configure("queues: {beta: {processes: 1}, gamma: {processes: 2}}\n" + LIMITS)
    program.send(signal.SIGHUP)
    program.wait("child_ready", 2, queue="gamma")
    program.wait("child_died", 2)
    assert {event["child"] for event in program.events("child_died")} == {"alpha#0", "beta#1"}
    assert len(program.events("child_forked", queue="beta")) == 2
    assert program.end() == 0


def test_a_broken_file_is_refused_with_all_its_problems_and_nothing_changes(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.configure("queues: {alpha: {max_workers: many, colour: red}}\n")
    program.send(signal.SIGHUP)
    [refused] = program.wait("reload_refused")
    assert "queues.alpha.max_workers" in refused["problem"]
    assert "queues.alpha.colour" in refused["problem"]
    program.configure(TWO)
    program.send(signal.SIGHUP)
    [reloaded] = program.wait("reloaded")
    assert (reloaded["replaced"], reloaded["opened"], reloaded["closed"]) == ([], [], [])
    assert program.end() == 0


def test_another_database_is_refused_and_nothing_changes(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.configure(TWO, database="sqlite:///other.db")
    program.send(signal.SIGHUP)
    [refused] = program.wait("reload_refused")
    assert "database.url: another database needs a restart" in refused["problem"]
    program.configure(TWO, database="sqlite:///./unused.db")
    program.send(signal.SIGHUP)
    program.wait("reloaded")
    assert program.end() == 0


def test_a_reload_whose_replacement_cannot_boot_keeps_the_old_child_and_is_tried_again(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    program.script("alpha", boot="fail")
    program.configure(TWO.replace("alpha: {}", "alpha: {max_workers: 3}"))
    program.send(signal.SIGHUP)
    program.wait("rollout_stopped")
    assert not program.events("drain_started")
    program.script("alpha")
    program.send(signal.SIGHUP)
    program.wait("child_died", 2, queue="alpha")
    assert program.events("reloaded")[1]["replaced"] == ["alpha#0"]
    assert program.end() == 0


def test_a_new_queue_that_cannot_boot_does_not_stop_the_others_but_the_program_is_not_ready(start: Start) -> None:
    program = start(TWO, gamma={"boot": "fail"})
    program.wait("child_ready", 3)
    program.configure(TWO.replace("alpha: {}", "alpha: {}, gamma: {}"))
    program.send(signal.SIGHUP)
    program.wait("child_cannot_boot", 2)
    assert len(program.events("supervisor_not_ready")) == 1
    program.script("gamma")
    program.wait("supervisor_ready", 2)
    assert program.end() == 0


def test_ttin_adds_a_process_where_the_work_is_and_ttou_takes_one_where_it_is_not(start: Start) -> None:
    busy = {"running": [["A" * 26, 1, 1e6]]}
    program = start(TWO, alpha=busy)
    program.wait("child_ready", 3)
    program.send(signal.SIGTTIN)
    [added] = program.wait("process_added")
    assert added["child"] == "alpha#1"
    program.wait("child_ready", 4)
    program.send(signal.SIGTTOU)
    [removed] = program.wait("process_removed")
    assert removed["child"] == "beta#1"
    program.wait("child_died")
    # The file says what it said before, so a reload keeps what the signals did.
    program.send(signal.SIGHUP)
    [reloaded] = program.wait("reloaded")
    assert (reloaded["opened"], reloaded["closed"]) == ([], [])
    assert program.end() == 0


def test_ttou_leaves_every_queue_its_last_process(start: Start) -> None:
    program = start("queues: {alpha: {}}\n" + LIMITS)
    program.wait("child_ready")
    program.send(signal.SIGTTOU)
    program.wait("process_not_removed")
    assert program.end() == 0


@pytest.mark.parametrize("spent", [{"completed": 7}, {"memory_kb": 300_000}])
def test_a_spent_child_is_recycled_alone_and_only_once_its_replacement_is_ready(
    start: Start, spent: dict[str, object]
) -> None:
    program = start("queues: {alpha: {max_jobs: 7, max_memory: 256MB}, beta: {}}\n" + LIMITS)
    [old] = program.wait("child_ready", queue="alpha")
    program.wait("child_ready", 2)
    program.script("alpha", only_pid=old["pid"], **spent)
    program.wait("child_died", pid=old["pid"])
    assert_replaced_with_capacity_kept(program, "alpha#0")
    assert program.events("drain_started")[0]["reason"] == "recycle"
    assert len(program.events("child_forked", queue="beta")) == 1
    assert program.end() == 0


def test_a_recycling_that_cannot_boot_keeps_the_old_child(start: Start) -> None:
    program = start("queues: {alpha: {max_jobs: 1}}\n" + LIMITS)
    [old] = program.wait("child_ready")
    program.script("alpha", completed=1, boot="fail")
    program.wait("replacement_failed", 2)
    assert not program.events("drain_started")
    program.script("alpha", completed=0)
    assert old["pid"] in {event["pid"] for event in program.events("child_ready")}
    assert program.end() == 0


JOB = "J" * 26
RECYCLINGS = 1_000


@pytest.mark.parametrize("how", ["recycle", "rolling_restart", "reload"])
def test_one_that_is_replaced_outlasts_the_grace_and_only_its_own_limits_end_it(start: Start, how: str) -> None:
    config = (
        "queues: {alpha: {max_jobs: 7, hard_limit_grace: 1s}}\n"
        "supervisor: {shutdown_grace: 1s, respawn_min: 50ms, respawn_max: 200ms}\n"
    )
    program = start(config, alpha={"running": [[JOB, 1, 4.0]], "term": "ignore"})
    [old] = program.wait("child_ready")
    if how == "recycle":
        program.script("alpha", running=[[JOB, 1, 4.0]], term="ignore", completed=7, only_pid=old["pid"])
    elif how == "reload":
        program.configure(config.replace("max_jobs: 7", "max_jobs: 8"))
        program.send(signal.SIGHUP)
    else:
        program.send(signal.SIGUSR2)
    [left] = program.wait("drain_started", pid=old["pid"])
    assert (left["reason"], left["grace"]) == (how, None)
    [killed] = program.wait("child_killed", pid=old["pid"])
    assert (killed["reason"], killed["culprits"]) == ("hard_limit", [JOB])
    program.end()


def test_a_shutdown_brings_the_hurry_to_one_that_leaves_without(start: Start) -> None:
    program = start(TWO, alpha={"running": [[JOB, 1, 1e6]], "term": "hurry"})
    program.wait("child_ready", 3)
    program.send(signal.SIGUSR2)
    [left] = program.wait("drain_started", child="alpha#0")
    program.wait("child_ready", 2, queue="alpha")
    assert not program.events("child_died", queue="alpha")
    assert program.end() == 0
    assert [event["pid"] for event in program.events("drain_hurried")] == [left["pid"]]


def test_one_that_leaves_without_hurry_and_runs_nothing_has_the_grace(start: Start) -> None:
    program = start(TWO.replace("5s", "1s"), alpha={"term": "ignore"})
    program.wait("child_ready", 3)
    program.send(signal.SIGUSR2)
    program.wait("child_killed", child="alpha#0", reason="grace_over")
    program.wait("child_ready", 3, queue="beta")
    program.script("alpha")
    program.end()


def test_a_rollout_does_not_wait_for_long_jobs_longer_than_a_grace(start: Start) -> None:
    program = start(TWO.replace("5s", "1s"), alpha={"running": [[JOB, 1, 1e6]], "term": "ignore"})
    program.wait("child_ready", 3)
    program.send(signal.SIGUSR2)
    program.wait("child_died", 2, queue="beta")
    assert not program.events("child_died", queue="alpha")
    program.script("alpha")
    program.end()


def test_no_more_than_three_predecessors_are_left_finishing(start: Start) -> None:
    program = start(
        "queues: {alpha: {max_jobs: 1}}\n" + LIMITS,
        alpha={"running": [[JOB, 1, 1e6]], "term": "ignore", "completed": 1},
    )
    program.wait("recycle_waits")
    assert len(program.events("drain_started")) == 3
    program.script("alpha")
    program.wait("child_died", 3)
    assert program.end() == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_recyclings_leave_descriptors_memory_and_the_children_as_they_were(start: Start) -> None:
    """C18: forks elsewhere start as big as their parent has grown, and replacements deadlock. 45 s on two busy cores."""
    spent: dict[str, object] = {"completed": 1}
    program = start(
        "queues: {alpha: {max_jobs: 1, processes: 3}, beta: {max_jobs: 1, processes: 3}}\n" + LIMITS,
        alpha=spent,
        beta=spent,
    )
    program.wait("child_died", 20)
    before = descriptors(program.pid), resident_kb(program.pid), fresh_child_kb(program)
    program.wait("child_died", RECYCLINGS, timeout=240)
    after = descriptors(program.pid), resident_kb(program.pid), fresh_child_kb(program)
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2_048
    assert after[2] <= before[2] + 2_048
    assert threads(program.pid) == 1
    # Each of them was replaced before it left, so that no moment lacked a process, and none had to be killed.
    assert not program.events("supervisor_not_ready")
    assert not program.events("child_killed")
    program.script("alpha")
    program.script("beta")
    assert program.end() == 0
    assert len(program.events("child_ready")) >= RECYCLINGS + 6


def fresh_child_kb(program: FakeProgram) -> int:
    """Resident memory of a child that has just become ready."""
    while True:
        program.wait("child_ready", len(program.events("child_ready")) + 1)
        # It may be gone already.
        with suppress(FileNotFoundError, ProcessLookupError):
            return resident_kb(program.events("child_ready")[-1]["pid"])


def descriptors(pid: int) -> int:
    """Open files of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_kb(pid: int) -> int:
    """Its resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4


def threads(pid: int) -> int:
    """Its threads."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
