"""Draining a worker."""

import pytest

from chokaq.jobs.ids import is_id
from chokaq.operations import OperationError, by, drain_worker
from chokaq.operations.workers import check_workers
from tests.support.fake_repairs import FakeRepairs
from tests.support.ids import new_id, new_ids

ANNA = by("anna", "the host is rebooted")


def test_a_live_worker_is_told_an_ended_and_an_unknown_one_are_not(fake: FakeRepairs) -> None:
    live, ended = new_ids(2)
    fake.workers = {live: True, ended: False}
    answers = [drain_worker(fake.session, worker.lower(), ANNA) for worker in (live, ended, new_id())]
    assert [answer.result for answer in answers] == ["accepted", "wrong_state", "unknown"]
    assert answers[0].id == live
    assert {(call.actor, call.reason) for call in fake.calls} == {("anna", "the host is rebooted")}
    assert all(call.request is not None and is_id(call.request) for call in fake.calls)


def test_what_is_no_worker_id_is_refused(fake: FakeRepairs) -> None:
    with pytest.raises(OperationError, match="'web-1' is not a worker id"):
        drain_worker(fake.session, "web-1", ANNA)
    assert fake.calls == []


def test_a_hundred_distinct_workers_are_drained_at_a_time() -> None:
    ids = new_ids(100)
    assert check_workers(ids + ids) == ids
    for count in (0, 101):
        with pytest.raises(OperationError, match="drain 1 to 100 workers at a time"):
            check_workers(new_ids(count))
