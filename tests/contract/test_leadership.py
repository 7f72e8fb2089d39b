"""TakeLeadership: a row with a term issued by the database."""

from datetime import timedelta
from functools import partial

from chokaq.store.protocol import Session, Store
from tests.support.holder import Holder
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

INTERVAL = 60_000


def member(session: Session) -> Holder:
    """A maintenance process."""
    return Holder(session, "")


def test_the_first_to_ask_leads(session: Session, store: Store) -> None:
    holder = member(session)

    lead = session.take_leadership(holder.worker, INTERVAL)

    assert (lead.leading, lead.holder, lead.last_pass_age_ms) == (True, holder.id, None)
    assert lead.term >= 1
    assert abs(lead.now - store.now()) < timedelta(seconds=20)


def test_the_holder_renews_and_the_others_wait(session: Session, lab: Lab) -> None:
    first, second = member(session), member(session)
    term = session.take_leadership(first.worker, INTERVAL).term
    lab.age_all("Leadership", "LastPassUtc", INTERVAL)

    other = session.take_leadership(second.worker, INTERVAL)
    again = session.take_leadership(first.worker, INTERVAL)

    assert (other.leading, other.holder, other.term) == (False, first.id, term)
    assert other.last_pass_age_ms is not None
    assert INTERVAL <= other.last_pass_age_ms < INTERVAL + 20_000
    assert (again.leading, again.holder, again.term) == (True, first.id, term)
    assert again.last_pass_age_ms is not None
    assert again.last_pass_age_ms >= INTERVAL, "asking in vain is not a pass"
    renewed = session.take_leadership(first.worker, INTERVAL).last_pass_age_ms
    assert renewed is not None
    assert renewed < 20_000


def test_a_holder_that_missed_three_intervals_loses_it_and_the_term_rises(session: Session, lab: Lab) -> None:
    first, second = member(session), member(session)
    term = session.take_leadership(first.worker, INTERVAL).term
    lab.age_all("Leadership", "LastPassUtc", 3 * INTERVAL + 1_000)

    taken = session.take_leadership(second.worker, INTERVAL)

    assert (taken.leading, taken.holder, taken.term) == (True, second.id, term + 1)
    assert taken.last_pass_age_ms is not None
    assert taken.last_pass_age_ms >= 3 * INTERVAL
    late = session.take_leadership(first.worker, INTERVAL)
    assert (late.leading, late.holder, late.term) == (False, second.id, term + 1)


def test_a_holder_that_returns_late_and_finds_no_other_leads_on(session: Session, lab: Lab) -> None:
    """It learns how long it was away, so that it judges nobody too early."""
    holder = member(session)
    session.take_leadership(holder.worker, INTERVAL)
    lab.age_all("Leadership", "LastPassUtc", 10 * INTERVAL)

    lead = session.take_leadership(holder.worker, INTERVAL)

    assert (lead.leading, lead.holder) == (True, holder.id)
    assert lead.last_pass_age_ms is not None
    assert lead.last_pass_age_ms >= 10 * INTERVAL


def test_of_many_that_ask_at_once_exactly_one_leads(sessions: Sessions, lab: Lab) -> None:
    several = [member(session) for session in sessions.many(6)]
    terms = []
    for _ in range(4):
        leads = together([partial(m.session.take_leadership, m.worker, INTERVAL) for m in several])

        assert sum(lead.leading for lead in leads) == 1
        [holder] = [member.id for member, lead in zip(several, leads, strict=True) if lead.leading]
        [row] = lab.rows("Leadership")
        assert row["Holder"] == holder
        terms.append(row["Term"])
        lab.age_all("Leadership", "LastPassUtc", 5 * INTERVAL)
    assert terms == sorted(terms)
