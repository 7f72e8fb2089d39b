"""When the leader may judge others (design §7)."""

import pytest

from chokaq.maintenance.leader import COMEBACK, Lead, outage
from chokaq.store.records import Registration

from .fakes import ME, FakeStore

REGISTRATION = Registration(ME, "", 7)


@pytest.mark.parametrize(
    ("own", "store", "broken", "trusted"),
    [
        (None, None, False, False),
        (60.0, 60.0, False, True),
        (119.0, 121.0, False, True),
        (121.0, 121.0, False, False),
        (60.0, 121.0, False, False),
        (60.0, -1.0, False, False),
        (60.0, 60.0, True, False),
    ],
)
def test_heartbeats_are_trusted_only_after_an_undisturbed_interval(
    own: float | None, store: float | None, broken: bool, trusted: bool
) -> None:
    assert (outage(own, store, 60.0, broken=broken) is None) is trusted


def test_a_leader_judges_nobody_for_two_heartbeats_after_its_first_pass() -> None:
    store, lead = FakeStore(), Lead(interval=60.0, heartbeat=10.0)
    assert lead.take(store, REGISTRATION, 100.0, breaks=0) == 20.0
    assert not lead.may_judge(119.9)
    store.seconds = 20.0
    assert lead.take(store, REGISTRATION, 120.0, breaks=0) == 60.0
    assert lead.may_judge(120.0)


def test_however_fast_a_queue_beats_its_workers_get_the_time_to_come_back_after_an_outage() -> None:
    """C30: their lanes pause for up to 2 s between two tries; judged sooner, running jobs of live workers became zombies."""
    store, lead = FakeStore(), Lead(interval=60.0, heartbeat=0.2)
    assert lead.take(store, REGISTRATION, 0.0, breaks=0) == COMEBACK
    store.seconds = COMEBACK
    lead.take(store, REGISTRATION, COMEBACK, breaks=0)
    assert lead.may_judge(COMEBACK)
    lead.take(store, REGISTRATION, 60.0, breaks=1)
    assert not lead.may_judge(60.0 + COMEBACK - 0.1)
    assert lead.may_judge(60.0 + COMEBACK)


def test_a_host_whose_clock_is_wrong_but_steady_judges_as_the_others_do() -> None:
    """C35."""
    store, lead = FakeStore(), Lead(interval=60.0, heartbeat=10.0)
    lead.take(store, REGISTRATION, 0.0, breaks=0)
    store.seconds = 20.0
    lead.take(store, REGISTRATION, 20.0, breaks=0)
    # The fake's calendar is years away from this host's; only the spans are compared.
    assert lead.may_judge(20.0)


def test_a_jump_of_the_database_clock_postpones_the_judging() -> None:
    store, lead = FakeStore(), Lead(interval=60.0, heartbeat=10.0)
    lead.take(store, REGISTRATION, 0.0, breaks=0)
    store.seconds = 20.0
    lead.take(store, REGISTRATION, 20.0, breaks=0)
    store.seconds = 80.0 + 600.0
    assert lead.take(store, REGISTRATION, 80.0, breaks=0) == 20.0
    assert not lead.may_judge(99.0)
    assert lead.may_judge(100.0)


def test_who_does_not_lead_judges_nobody() -> None:
    store, lead = FakeStore(), Lead(interval=60.0, heartbeat=10.0)
    store.leading = False
    lead.take(store, REGISTRATION, 0.0, breaks=0)
    store.seconds = 20.0
    lead.take(store, REGISTRATION, 20.0, breaks=0)
    assert not lead.may_judge(1e6)
