"""What can happen to the embedded store's file while a fleet works on it (C11, C29, C30)."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from tests.chaos.fleet import BOOT, PROGRAMS, Fleet, Shape
from tests.chaos.scenario import Scenario
from tests.chaos.workload import Plan

STORE = "sqlite"


def database(scenario: Scenario) -> Path:
    """The file."""
    return Path(scenario.url.removeprefix("sqlite:///"))


def test_a_foreign_writer_that_keeps_the_file_locked_kills_no_worker_and_no_running_job(scenario: Scenario) -> None:
    """C30: longer than the leases last. Not ready meanwhile, alive all the while; nobody is judged when it ends."""
    # Heartbeats far shorter than the pauses of a lane that waits for its store: two of them are no time to come back in.
    shape = Shape(replicas=2, processes=1, command_timeout="1s", heartbeat="200ms", zombie_timeout=6.0)
    fleet = scenario.begin(shape)
    scenario.load(more=scenario.plan.lasting(10, 3.0))
    children = set(fleet.children())

    def lock() -> None:
        ready = {program: len(program.events("supervisor_ready")) for program in fleet.programs}
        with closing(sqlite3.connect(database(scenario), isolation_level=None, timeout=30)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            outlasted = scenario.outlasts_the_leases()
            for program in fleet.programs:
                program.wait("supervisor_not_ready", ready[program], timeout=BOOT)
            fleet.programs[0].until(outlasted, "the end of the leases")
            foreign.execute("ROLLBACK")
        for program, count in ready.items():
            fleet.wait_ready(program, count + 1)

    scenario.disturb([("lock the file", lock)])
    verdict = scenario.finish()
    assert verdict.crashed == verdict.repeated == verdict.handed_back == 0
    assert {event["pid"] for program in fleet.programs for event in program.events("child_forked")} == children


def test_children_that_die_while_the_folder_is_read_only_are_replaced_once_it_is_writable(scenario: Scenario) -> None:
    """C15, C30: their successors cannot boot for a while, which must neither end the program nor lose what they held."""
    fleet = scenario.begin(Shape(program=(str(PROGRAMS / "plain_user.py"),)))
    [program] = fleet.programs
    scenario.load()
    folder = database(scenario).parent

    def permit(files: int, of_folder: int) -> None:
        # The last connection of the file takes its companions away, at any moment: the test's own may be the last.
        for path in folder.glob(f"{database(scenario).name}*"):
            with suppress(FileNotFoundError):
                path.chmod(files)
        folder.chmod(of_folder)

    def forbid_writing() -> None:
        ready = len(program.events("supervisor_ready"))
        permit(0o444, 0o555)
        try:
            for pid in [*fleet.children(), fleet.maintenance(program)]:
                fleet.kill(pid, "child")
            program.wait("child_cannot_boot", timeout=BOOT)
            program.wait("maintenance_cannot_boot", timeout=BOOT)
        finally:
            permit(0o644, 0o755)
        program.wait("supervisor_ready", ready + 1, timeout=BOOT)

    scenario.disturb([("forbid writing", forbid_writing)])
    scenario.finish(allowed=["cannot boot"])


def test_a_full_file_stops_the_work_and_more_room_lets_it_go_on(scenario: Scenario, tmp_path: Path) -> None:
    """C11, C30: what cannot be stored is tried again; no outcome is lost, none is stored twice."""
    pages = tmp_path / "pages"
    [row] = scenario.lab.query("PRAGMA page_count")
    pages.write_text(str(row["page_count"] + 40))
    fleet = scenario.begin(
        Shape(command_timeout="1s", program=(str(PROGRAMS / "small_file.py"),), environ={"CHAOS_PAGES": str(pages)})
    )
    scenario.load(Plan(scenario.chance, payload_bytes=3_000).draw(scenario.jobs))

    # Sooner or later, by how far ahead the driver is: no share of the jobs can be waited for.
    fleet.programs[0].until(lambda: _has_been_full(fleet), "a full file", scenario.patience)
    pages.write_text("1000000")
    verdict = scenario.finish()
    assert verdict.crashed == verdict.repeated == 0


def _has_been_full(fleet: Fleet) -> bool:
    events = fleet.programs[0].events("store_unavailable")
    return any("full" in event["error"] for event in events)
