"""A viewer changes nothing, whichever operation is called: the role travels with the actor."""

from collections.abc import Callable

import pytest

from chokaq.operations import (
    By,
    NotAllowed,
    Role,
    activate_queue,
    by,
    cancel_jobs,
    deactivate_queue,
    drain_worker,
    drop_jobs,
    edit_job,
    force_circuit,
    pause_queue,
    purge_jobs,
    resume_queue,
    resurrect_jobs,
    set_queue,
)
from chokaq.store.protocol import Session
from chokaq.store.repairs import Edits
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, new_job
from tests.support.lab import Lab

JOB = new_id()

CHANGES: dict[str, Callable[[Session, By], object]] = {
    "cancel": lambda session, who: cancel_jobs(session, [JOB], who),
    "resurrect": lambda session, who: resurrect_jobs(session, [JOB], who),
    "drop": lambda session, who: drop_jobs(session, [JOB], who),
    "purge": lambda session, who: purge_jobs(session, [JOB], who),
    "edit": lambda session, who: edit_job(session, JOB, Edits(priority=1), who),
    "pause": lambda session, who: pause_queue(session, QUEUE, who),
    "resume": lambda session, who: resume_queue(session, QUEUE, who),
    "activate": lambda session, who: activate_queue(session, QUEUE, who),
    "deactivate": lambda session, who: deactivate_queue(session, QUEUE, who),
    "set": lambda session, who: set_queue(session, QUEUE, who, max_workers=3),
    "drain": lambda session, who: drain_worker(session, JOB, who),
    "circuit": lambda session, who: force_circuit(session, "email.send.v1", "open", who),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_viewer_is_refused_by_name_and_nothing_changes(
    session: Session, lab: Lab, change: Callable[[Session, By], object]
) -> None:
    Holder(session)
    session.enqueue_jobs([new_job()])
    before = lab.snapshot()

    with pytest.raises(NotAllowed, match=r"vera may look but not change anything \(role viewer\); nothing was changed"):
        change(session, by("vera", "because", role=Role.VIEWER))

    assert lab.snapshot() == before


def test_whoever_names_no_role_is_an_operator() -> None:
    assert by("anna").role is Role.OPERATOR
