"""The maintenance loop, turn by turn, against a fake store."""

from collections.abc import Iterator

import pytest

from chokaq.config.settings import MaintenanceSettings, QueueSettings, Settings
from chokaq.maintenance.link import StoreLink
from chokaq.maintenance.loop import MaintenanceLoop
from chokaq.store.errors import SchemaMismatch, StoreRefused, StoreUnavailable
from chokaq.store.records import Released, WorkerInfo

from .fakes import ME, Boss, FakeSlot, FakeStore

SETTINGS = Settings(
    queues={"emails": QueueSettings(name="emails", heartbeat=10.0, archive_retention=100.0)},
    maintenance=MaintenanceSettings(
        rescue_interval=60.0, retention_interval=300.0, rollup_interval=60.0, batch_size=10
    ),
)
WORKER = WorkerInfo(worker_id=ME, queue="", host="here", pid=1, version="0")
CHORES = ("keep_alive", "take_leadership", "roll_up", "purge_archive", "purge_leftovers", "hot_queues")


class Bench:
    """A loop with everything around it."""

    def __init__(self) -> None:
        self.store, self.slot, self.boss = FakeStore(), FakeSlot(), Boss()
        self.rung: list[str] = []
        self.loop = MaintenanceLoop(
            SETTINGS, StoreLink(self.store, WORKER), self.boss.theirs, self.slot, ring=self.rung.append
        )
        self.now = 1_000.0
        self.ended = False

    def turns(self, count: int = 1) -> None:
        """Turn, advancing both clocks by what the loop asks to wait."""
        for _ in range(count):
            wait = self.loop.turn(self.now)
            if wait is None:
                self.ended = True
                return
            self.now += wait
            self.store.seconds += wait

    def until(self, seconds: float) -> None:
        """Turn until that much time has passed."""
        end = self.now + seconds
        while self.now < end and not self.ended:
            self.turns()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A fresh loop."""
    bench = Bench()
    yield bench
    bench.boss.close()


def test_a_notice_is_carried_out_and_then_acknowledged(bench: Bench) -> None:
    bench.boss.tell(1, "A" * 26)
    bench.turns()
    assert bench.store.calls[1][:3] == ("release_worker", "A" * 26, "crash")
    assert bench.boss.acks() == [1]
    assert bench.slot.is_ready


def test_a_release_goes_on_until_nothing_is_left(bench: Bench) -> None:
    bench.store.released.extend(
        [Released(pending=1_000, done=False), Released(pending=1_000, done=False), Released(pending=1)]
    )
    bench.boss.tell(1)
    bench.turns(2)
    assert bench.boss.acks() == []
    bench.turns()
    assert bench.store.names() == ["register_worker"] + ["release_worker"] * 3
    assert bench.boss.acks() == [1]


def test_an_idle_child_is_woken_for_what_a_dead_one_held(bench: Bench) -> None:
    bench.store.released.extend([Released(zombies=1), Released(pending=3)])
    bench.boss.tell(1, "A" * 26)
    bench.turns()
    assert bench.rung == []
    bench.boss.tell(2, "B" * 26)
    bench.turns()
    assert bench.rung == ["emails"]


def test_the_same_notice_twice_is_carried_out_once_while_it_waits(bench: Bench) -> None:
    bench.boss.tell(1)
    bench.boss.tell(1)
    bench.turns(2)
    assert bench.store.names(*CHORES).count("release_worker") == 1


def test_a_store_that_is_away_is_waited_for_without_end_and_nothing_is_acknowledged(bench: Bench) -> None:
    bench.turns()
    bench.boss.tell(1)
    bench.store.errors.extend([StoreUnavailable("away")] * 200)
    bench.until(600.0)
    assert bench.boss.acks() == []
    assert bench.store.errors
    bench.store.errors.clear()
    bench.until(6.0)
    assert bench.boss.acks() == [1]
    assert bench.store.names().count("register_worker") == 1


def test_a_notice_that_the_store_refuses_does_not_hold_up_the_others(bench: Bench) -> None:
    bench.turns()
    bench.boss.tell(1, "A" * 26)
    bench.boss.tell(2, "B" * 26)
    bench.store.errors.append(StoreRefused("no rights"))
    bench.turns(2)
    assert bench.boss.acks() == [2]
    bench.until(31.0)
    assert bench.boss.acks() == [1]


def test_a_wrong_schema_at_boot_is_raised_and_later_it_is_waited_out(bench: Bench) -> None:
    bench.store.errors.append(SchemaMismatch("too old"))
    with pytest.raises(SchemaMismatch):
        bench.turns()
    bench.turns()
    bench.store.errors.append(SchemaMismatch("too new"))
    bench.boss.tell(1)
    bench.until(2.0)
    assert bench.boss.acks() == [1]


def test_it_ends_only_by_the_supervisors_word_and_after_the_last_notice(bench: Bench) -> None:
    bench.turns()
    bench.boss.tell(1, "A" * 26)
    bench.store.errors.extend([StoreUnavailable("away")] * 3)
    bench.boss.stop()
    bench.turns()
    assert not bench.ended
    bench.until(30.0)
    assert bench.ended
    assert bench.boss.acks() == [1]
    # Last of all it ends its own row.
    assert bench.store.calls[-1][:3] == ("release_worker", ME, "shutdown")


def test_without_a_supervisor_it_finishes_what_it_has_and_ends(bench: Bench) -> None:
    bench.turns()
    bench.boss.tell(1, "A" * 26)
    bench.boss.die()
    bench.turns(2)
    assert bench.ended
    assert bench.loop.orphaned
    assert [call[1] for call in bench.store.calls if call[0] == "release_worker"] == ["A" * 26, ME]


def test_the_first_rescue_comes_two_heartbeats_after_the_start(bench: Bench) -> None:
    bench.until(19.0)
    assert "recover_abandoned" not in bench.store.names()
    bench.until(3.0)
    assert bench.store.names().count("recover_abandoned") == 1
    assert bench.store.names().count("archive_zombies") == 1


def test_rescue_goes_through_every_page_of_every_queue(bench: Bench) -> None:
    bench.store.queues = ["emails", "unknown"]
    bench.store.abandoned.extend([Released(pending=5, done=False, cursor="a:1"), Released()])
    bench.store.zombies.extend([Released(zombies=5, done=False, cursor="b:2"), Released()])
    bench.until(22.0)
    calls = [
        (call[0], call[1], call[-1])
        for call in bench.store.calls
        if call[0] in ("recover_abandoned", "archive_zombies")
    ]
    assert calls == [
        ("recover_abandoned", "emails", None),
        ("recover_abandoned", "emails", "a:1"),
        ("archive_zombies", "emails", None),
        ("archive_zombies", "emails", "b:2"),
        ("recover_abandoned", "unknown", None),
        ("archive_zombies", "unknown", None),
    ]


def test_after_an_outage_nobody_is_judged_for_two_heartbeats(bench: Bench) -> None:
    bench.until(25.0)
    bench.store.calls.clear()
    bench.store.errors.extend([StoreUnavailable("away")] * 200)
    bench.until(200.0)
    bench.store.errors.clear()
    back = bench.now
    while "recover_abandoned" not in bench.store.names():
        bench.turns()
    assert bench.now - back >= 20.0


def test_who_does_not_lead_does_none_of_the_leaders_work(bench: Bench) -> None:
    bench.store.leading = False
    bench.until(700.0)
    assert set(bench.store.names()) == {"register_worker", "keep_alive", "take_leadership", "purge_archive"}


def test_the_retention_of_our_own_queues_does_not_depend_on_who_leads(bench: Bench) -> None:
    bench.store.leading = False
    bench.until(10.0)
    assert [call[1] for call in bench.store.calls if call[0] == "purge_archive"] == ["emails"]


def test_it_keeps_its_own_row_alive(bench: Bench) -> None:
    bench.until(60.0)
    assert 5 <= bench.store.names().count("keep_alive") <= 8


def test_a_long_purge_goes_in_batches_and_lets_a_notice_pass(bench: Bench) -> None:
    bench.store.purges.extend([10] * 50)
    while bench.store.names().count("purge_archive") < 3:
        bench.turns()
    bench.boss.tell(1)
    bench.turns(2)
    assert bench.boss.acks() == [1]
    assert bench.store.names().count("purge_archive") < 10
    bench.until(30.0)
    assert bench.store.names().count("purge_archive") == 51
    assert "purge_leftovers" in bench.store.names()
    assert next(call for call in bench.store.calls if call[0] == "purge_archive") == (
        "purge_archive",
        "emails",
        100_000,
        10,
    )


def test_what_has_no_retention_is_never_deleted(bench: Bench) -> None:
    bench.until(700.0)
    assert "purge_dlq" not in bench.store.names()


def test_a_refused_chore_is_skipped_until_its_timer_comes_round_again(bench: Bench) -> None:
    bench.until(19.0)
    bench.store.errors.append(StoreRefused("no rights"))
    bench.until(130.0)
    assert bench.store.names().count("recover_abandoned") >= 1


def test_a_keep_alive_that_is_always_refused_comes_at_its_time_and_the_rescue_runs(bench: Bench) -> None:
    bench.store.refused["keep_alive"] = StoreRefused("no rights")
    bench.until(100.0)
    assert bench.store.names().count("keep_alive") <= 11
    assert bench.store.names().count("archive_zombies") >= 1
    assert bench.store.names().count("roll_up") >= 1
