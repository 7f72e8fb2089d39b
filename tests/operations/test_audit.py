"""The audit log, page by page (C48)."""

import pytest

from chokaq.operations import OperationError, by, cancel_jobs, list_audit, pause_queue, resume_queue
from chokaq.operations.cursors import cursor_of
from chokaq.store.protocol import Session
from tests.support.jobs import QUEUE, new_jobs

ANNA, BERT = by("anna", "storm"), by("bert")


def test_pages_of_one_target_follow_each_other_newest_first(session: Session) -> None:
    pause_queue(session, QUEUE, ANNA, create=True)
    jobs = new_jobs(1)
    session.enqueue_jobs(jobs)
    cancel_jobs(session, [jobs[0].id], BERT)
    resume_queue(session, QUEUE, BERT)
    first = list_audit(session, QUEUE, 1)
    assert [(entry.actor, entry.target) for entry in first.entries] == [("bert", QUEUE)]
    assert first.after is not None
    rest = list_audit(session, QUEUE, 5, first.after)
    assert [(entry.actor, entry.reason) for entry in rest.entries] == [("anna", "storm")]
    assert rest.after is None
    assert [entry.target for entry in list_audit(session).entries] == [QUEUE, jobs[0].id, QUEUE]
    assert [entry.actor for entry in list_audit(session, jobs[0].id.lower()).entries] == ["bert"]


def test_a_full_last_page_has_no_next(session: Session) -> None:
    pause_queue(session, QUEUE, ANNA, create=True)
    assert list_audit(session, QUEUE, 1).after is None


def test_the_cursor_of_one_target_is_refused_for_another(session: Session) -> None:
    pause_queue(session, QUEUE, ANNA, create=True)
    resume_queue(session, QUEUE, ANNA)
    after = list_audit(session, QUEUE, 1).after
    with pytest.raises(OperationError, match="another filter"):
        list_audit(session, None, 1, after)
    with pytest.raises(OperationError, match="damaged"):
        list_audit(session, None, 1, cursor_of("audit", None, "x"))


@pytest.mark.parametrize("limit", [0, 201])
def test_a_page_holds_1_to_200_entries(session: Session, limit: int) -> None:
    with pytest.raises(OperationError, match="1 to 200 entries"):
        list_audit(session, limit=limit)


def test_what_cannot_be_a_target_is_refused(session: Session) -> None:
    with pytest.raises(OperationError, match="is not a queue name"):
        list_audit(session, "ü")
