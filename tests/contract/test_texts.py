"""Every kind of text comes back as it went in: payloads byte for byte, free text as any Unicode without NUL."""

import json

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Beat, Failure, Figures, QueueChange, Retry
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, worker_info
from tests.support.lab import Lab

PAYLOADS = {
    "quotes": '{"say":"\\"hi\\" and \'ho\'"}',
    "newlines": '{\n  "a":\t"x\\r\\n\\ty"\r\n}',
    "nul_escape": '{"a":"\\u0000"}',
    "astral_pair": '{"a":"\\ud83d\\ude00"}',
    "lone_surrogate": '{"a":"\\ud800"}',
    "numbers": '{"e":1e5,"f":1.0,"big":123456789012345678901234567890,"neg":-0.0,"exp":1E+05}',
    "key_order": '{"z":1,"a":2,"z2":{"y":1,"b":2},"Z":3}',
    "same_key_twice": '{"a":1,"a":2}',
    "spaces": '  {"a" : 1 }  ',
    "trailing_spaces": '{"a":1}      ',
    "sql": '{"a":"\'; DROP TABLE chokaq.JobsHot; --"}',
    "percent": '{"a":"100%_[x]^"}',
    "backslashes": '{"a":"C:\\\\temp\\\\","b":"\\/"}',
    "scalar": "0",
    "null": "null",
    "empty_object": "{}",
    "delete_character": '{"a":"\x7f"}',
    "question_marks": '{"a":"???? ? :a @b $c"}',
    "deep": "[" * 500 + "]" * 500,
}
FREE_TEXTS = {
    "quotes": "\"double\" 'single' `back` «guillemets» \\ / \\\\ \\n \\u0041",
    "lines": "first\nsecond\r\nthird\rfourth\n\n",
    "tabs": "a\tb\t\tc",
    "emoji": "😀👩‍👩‍👧‍👦🏳️‍🌈 ok",
    "scripts": "почта 订单 نص עברית ไทย ß ẞ ı İ",  # noqa: RUF001 - on purpose
    "private_use": '\ue000\ue001\ue002\ue003\ue004\ue005\uf8ff and "quoted"\nlines',
    "controls": "bell\x07 escape\x1b[31m unit\x1f del\x7f vt\x0b ff\x0c nel\x85 ls\u2028",
    "json": '{"a": ["b", {"c": null}]}',
    "combining": "e\u0301 vs \u00e9, \u200b zero \ufeff bom \ufffd \uffff",
    "spaces": "  leading and trailing  ",
    "sql": "'; DROP TABLE x; -- % _ [a-z]",
    "astral_private": "\U000f0000\U0010fffd",
}
each_text = pytest.mark.parametrize("text", FREE_TEXTS.values(), ids=list(FREE_TEXTS))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=list(PAYLOADS))
def test_a_payload_comes_back_byte_for_byte(session: Session, payload: str) -> None:
    """Numbers like 1e5 and the order of keys included: a JSON function that re-serialises them is a bug."""
    job = new_job(payload=payload, headers='{"h":"\\u00e9"}')
    session.enqueue_jobs([new_job(), job, new_job()])

    fetched = {found.id: found for found in Holder(session).fetch(3).jobs}[job.id]
    view = session.get_job(job.id)

    assert view is not None
    assert fetched.payload == view.payload == payload
    assert fetched.headers == view.headers == '{"h":"\\u00e9"}'


def test_payloads_of_all_kinds_in_one_call_do_not_mix(session: Session) -> None:
    jobs = [new_job(payload=payload, tags=None) for payload in PAYLOADS.values()]
    session.enqueue_jobs(jobs)

    fetched = {job.id: job.payload for job in Holder(session).fetch(100).jobs}

    assert fetched == {job.id: job.payload for job in jobs}


@pytest.mark.parametrize("size", [1_999, 2_001, 4_000, 8_000, 8_001, 65_536, 900_000])
def test_a_large_payload_comes_back_byte_for_byte(session: Session, size: int) -> None:
    filler = "".join(chr(33 + n % 90) for n in range(size)).replace('"', "x").replace("\\", "y")
    job = new_job(payload=f'"{filler[: size - 2]}"')
    session.enqueue_jobs([new_job(), job])

    fetched = {found.id: found for found in Holder(session).fetch(3).jobs}[job.id]

    assert fetched.payload == job.payload
    holder = Holder(session)
    assert holder.fetch(3).jobs == []


def test_a_call_may_carry_four_megabytes(session: Session) -> None:
    jobs = [new_job(payload='"' + chr(97 + n) * 980_000 + '"') for n in range(4)]
    session.enqueue_jobs(jobs)

    assert [job.payload for job in Holder(session).fetch(10).jobs] == [job.payload for job in jobs]


def test_a_large_payload_survives_every_move(session: Session) -> None:
    payload = json.dumps({"x": "y" * 900_000})
    session.enqueue_jobs([new_job(payload=payload), new_job(payload=payload)])
    holder = Holder(session)
    good, bad = holder.take(2)
    holder.succeed([good])
    session.archive_failed(holder.worker, [Failure(bad.id, bad.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR)])

    for job_id in (good.id, bad.id):
        view = session.get_job(job_id)
        assert view is not None
        assert view.payload == payload


@each_text
def test_tags_and_creator_come_back_as_written(session: Session, text: str) -> None:
    job = new_job(tags=text, created_by=text[:100])
    session.enqueue_jobs([new_job(tags="before"), job, new_job(tags="after")])

    view = session.get_job(job.id)
    fetched = {found.id: found for found in Holder(session).fetch(3).jobs}[job.id]

    assert view is not None
    assert (view.tags, view.created_by) == (text, text[:100])
    assert (fetched.tags, fetched.created_by) == (text, text[:100])


@each_text
def test_an_idempotency_key_may_be_any_text(session: Session, text: str) -> None:
    key = text.strip()
    job = new_job(idempotency_key=key)
    session.enqueue_jobs([job])

    [again] = session.enqueue_jobs([new_job(idempotency_key=key)])

    assert (again.id, again.created) == (job.id, False)


@each_text
def test_errors_come_back_as_raised(session: Session, text: str) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job(), new_job()])
    retried, failed = holder.take(2)
    error = AttemptError(text[:255], text * 3, text * 50)
    session.reschedule_for_retry(holder.worker, [Retry(retried.id, retried.lease, 0, error)])
    session.archive_failed(
        holder.worker, [Failure(failed.id, failed.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)]
    )

    for job_id in (retried.id, failed.id):
        assert [attempt.error for attempt in session.list_attempts(job_id)] == [error]
    view = session.get_job(failed.id)
    assert view is not None
    assert (view.error_type, view.error_message) == (error.type, error.message)


@each_text
def test_progress_notes_come_back_as_written(session: Session, text: str) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 1, text)], Figures())

    view = session.get_job(held.id)

    assert view is not None
    assert view.note == text


@each_text
def test_reasons_and_actors_come_back_as_written(session: Session, text: str) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    session.cancel_jobs([held.id], text[:100], text)
    session.set_queue(QUEUE, QueueChange(max_workers=3), text[:100], text)

    [told] = holder.fetch(0).cancellations

    assert (told.actor, told.reason) == (text[:100], text)
    assert {(entry.actor, entry.reason) for entry in session.list_audit()} == {(text[:100], text)}


@pytest.mark.parametrize("letter", ["x", "é", "я", "订", "😀"])
def test_an_error_of_the_greatest_length_can_always_be_recorded(session: Session, letter: str) -> None:
    """C45: the error text is too long to store, so the failure fails. Astral letters count two in SQL Server: may be cut."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    error = AttemptError(letter * 255, letter * 4_000, letter * 16_000)

    failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)
    assert session.archive_failed(holder.worker, [failure]) == [Answer.APPLIED]

    [attempt] = session.list_attempts(held.id)
    stored = attempt.error
    least = 2 if letter == "😀" else 1
    for given, kept in (
        (error.type, stored.type),
        (error.message, stored.message),
        (error.trace or "", stored.trace or ""),
    ):
        assert given.startswith(kept)
        assert len(kept) >= len(given) // least - 1


def test_one_batch_of_many_errors_keeps_each_with_its_job(session: Session) -> None:
    holder = Holder(session)
    texts = list(FREE_TEXTS.values()) * 5
    session.enqueue_jobs([new_job() for _ in texts])
    held = holder.take(len(texts))
    errors = [AttemptError(f"E{n}", text, None if n % 2 else text * 2) for n, text in enumerate(texts)]
    session.reschedule_for_retry(
        holder.worker, [Retry(h.id, h.lease, 0, error) for h, error in zip(held, errors, strict=True)]
    )

    found = [session.list_attempts(h.id)[0].error for h in held]

    assert found == errors


def test_an_empty_text_is_not_none(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    error = AttemptError("E", "", "")
    session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, error)])

    [attempt] = session.list_attempts(held.id)

    assert attempt.error.message == ""
    assert not attempt.error.trace


@pytest.mark.parametrize("bad", ["ü", "очередь", "a\0b", "new\nline"])
def test_a_worker_of_an_impossible_queue_is_refused(session: Session, lab: Lab, bad: str) -> None:
    with pytest.raises(StoreRefused, match=r"(?i)queue"):
        session.register_worker(worker_info(queue=bad))
    with pytest.raises(StoreRefused, match=r"(?i)queue"):
        session.set_queue(bad, QueueChange(paused=True), "ann")

    assert lab.count("Workers") == lab.count("Queues") == 0


def test_a_host_may_have_any_name(session: Session) -> None:
    session.register_worker(worker_info(host='büro-"1"\n'))

    assert [view.host for view in session.list_workers()] == ['büro-"1"\n']
