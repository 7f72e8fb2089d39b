"""What pages read: totals, rates, charts, lists over three pillars, a job, the log; shared, and aged where counting is dear."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from chokaq.deck import board, figures
from chokaq.deck.desk import Desk
from chokaq.deck.reads import search_of, to_query
from chokaq.deck.shared import Shared
from chokaq.deck.shown import Search
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, Outcome, Pillar
from chokaq.operations import OperationError
from chokaq.store.circuits import CircuitChange
from chokaq.store.looking import Series, SeriesRow
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Beat, Failure, Figures, QueueChange
from tests.deck.conftest import OpenDesk
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab


def fail(session: Session, holder: Holder, held: Any, kind: str = "KeyError", message: str = "no 'x'") -> None:
    """Stop jobs for good."""
    for one in held:
        failure = Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, AttemptError(kind, message))
        session.archive_failed(holder.worker, [failure])


async def test_the_overview_counts_rates_and_judges(desk: Desk, session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([*new_jobs(8), new_job(delay_ms=3_600_000)])
    held = holder.take(5)
    holder.succeed(held[:3])
    fail(session, holder, held[3:4])
    oldest = session.browse_jobs(board.Browse(status=JobStatus.PENDING), 50).jobs
    for job in oldest:
        if job.due_at <= datetime.now(UTC):
            lab.age(job.id, "DueAtUtc", 12_000)

    found = await desk.reads.overview()

    assert (found.pending.value, found.scheduled.value, found.processing.value) == (3, 1, 1)
    assert (found.succeeded_total, found.failed_total) == (3, 1)
    assert 0 < found.per_second_1m <= 3
    assert found.failure_rate_5m == 0.25
    assert found.oldest_due_ms is not None
    assert found.oldest_due_ms >= 12_000
    assert found.lag == "critical"
    assert [(one.error_type, one.count) for one in found.families] == [("KeyError", 1)]
    assert any(f"The queue {QUEUE} lags" in line.sentence for line in found.health)
    assert any(line.what == "workers" and "no maintenance process" in line.sentence for line in found.health)


async def test_an_empty_store_is_healthy(desk: Desk) -> None:
    found = await desk.reads.overview()

    assert found.failure_rate_5m is None
    assert {line.health for line in found.health} == {"ok"}
    assert (await desk.reads.charts("day")).points[0].lag_p95_ms is None


async def test_queues_show_overrides_lag_and_what_ended(desk: Desk, session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(2))
    holder.succeed(holder.take(2))
    session.set_queue(QUEUE, QueueChange(max_workers=3, paused=True), "anna")

    [row] = await desk.reads.queues()

    assert (row.queue.name, row.succeeded_1m, row.max_workers, row.queue.live.paused) == (QUEUE, 2, 3, True)
    assert row.queue.updated_by == "anna"
    assert row.lag_mean_ms is not None
    assert row.lag_max_ms is not None


async def test_charts_have_a_point_for_every_step_and_every_outcome(desk: Desk, session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    held = holder.take(3)
    holder.succeed(held[:1])
    lab.age_all("MetricBuckets", "StartUtc", 1_800_000)
    before = await desk.reads.charts("hour")
    holder.succeed(held[1:2])
    fail(session, holder, held[2:])
    desk.live.hint()
    desk.reads._shared.forget()

    hour, day = await desk.reads.charts("hour"), await desk.reads.charts("day")

    assert (len(hour.points), hour.step_seconds, len(day.points), day.step_seconds) == (120, 30, 144, 600)
    assert [point.succeeded for point in before.points if point.succeeded] == [1]
    assert sum(point.succeeded for point in hour.points) == 2
    assert sum(point.succeeded for point in day.points) == 2
    assert sum(point.failed.get("FatalError", 0) for point in hour.points[-2:]) == 1
    steps = {later.start - earlier.start for earlier, later in zip(hour.points, hour.points[1:], strict=False)}
    assert steps == {timedelta(seconds=30)}


async def test_one_list_over_all_pillars_is_in_order_and_whole(desk: Desk, session: Session) -> None:
    holder = Holder(session)
    jobs = new_jobs(12)
    session.enqueue_jobs(jobs)
    held = holder.take(8)
    holder.succeed(held[::2])
    fail(session, holder, held[1:4:2])
    found, after = [], None
    while True:
        page = await desk.reads.jobs(Search(), 5, after)
        found += page.jobs
        after = page.after
        if after is None:
            break

    assert [job.id for job in found] == [job.id for job in reversed(jobs)]
    assert {job.pillar for job in found} == set(Pillar)
    upwards = await desk.reads.jobs(Search(descending=False), 500)
    assert [job.id for job in upwards.jobs] == [job.id for job in jobs]


async def test_a_whole_id_finds_its_job_directly_and_shows_no_payload(desk: Desk, session: Session) -> None:
    session.enqueue_jobs([job := new_job(), *new_jobs(3)])

    page = await desk.reads.jobs(Search(text=job.id.lower()))

    assert [one.id for one in page.jobs] == [job.id]
    assert page.jobs[0].payload is None
    assert (await desk.reads.jobs(Search(text=new_id()))).jobs == []


async def test_a_cursor_of_another_filter_is_refused(desk: Desk, session: Session) -> None:
    session.enqueue_jobs(new_jobs(3))
    page = await desk.reads.jobs(Search(pillar=Pillar.HOT), 1)

    with pytest.raises(OperationError, match="another list or another filter"):
        await desk.reads.jobs(Search(pillar=Pillar.HOT, queue=QUEUE), 1, page.after)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"pillar": "dlq", "reason": "FatalError", "error": "KeyError", "sort": "ended", "dir": "asc"},
        {"queue": "mail", "status": "Processing", "type": "email.send.v1", "tag": "a b", "q": "50%"},
        {"pillar": "archive", "from": "2026-05-01T12:00:00+00:00", "until": "2026-05-01T15:00:00+02:00"},
    ],
)
def test_a_search_survives_its_url(query: dict[str, str]) -> None:
    where = search_of(query)

    assert search_of(to_query(where)) == where
    assert to_query(where) == query


def test_words_are_read_in_any_case_and_others_are_refused() -> None:
    assert search_of({"status": "processing", "pillar": "HOT", "utm": "x", "q": "  "}) == Search(
        pillar=Pillar.HOT, status=JobStatus.PROCESSING
    )
    for query, message in [
        ({"status": "lost"}, "status: there is no 'lost'"),
        ({"pillar": "hot", "reason": "Timeout"}, "only jobs of the DLQ"),
        ({"pillar": "archive", "status": "Failed"}, "Failed stands in the pillar dlq"),
        ({"sort": "ended"}, "needs one pillar"),
        ({"sort": "ended", "pillar": "hot"}, "have not ended"),
        ({"from": "yesterday"}, "from: 'yesterday' is no instant"),
        ({"from": "2026-05-01T12:00:00"}, "names no time zone"),
        ({"queue": "a\0b"}, "is not a queue name"),
        ({"tag": "x" * 1_001}, "tag"),
    ]:
        with pytest.raises(OperationError, match=message):
            search_of(query)


async def test_a_job_page_shows_everything_about_it(desk: Desk, session: Session) -> None:
    session.enqueue_jobs(
        [job := new_job(payload='{"name":"J\\u00e9r\\u00f4me","n":[1,2]}', headers='{"traceparent":"00-1"}')]
    )
    holder = Holder(session)
    [held] = holder.take(1)
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 40, "half way")], Figures())

    running = await desk.reads.job(job.id)
    fail(session, holder, [held])
    desk.live.hint()
    desk.reads._shared.forget()
    stopped = await desk.reads.job(job.id.lower())

    assert running.payload == '{\n  "name": "Jérôme",\n  "n": [\n    1,\n    2\n  ]\n}'
    assert running.headers == {"traceparent": "00-1"}
    assert running.owner is not None
    assert running.owner.alive
    assert running.owner.sentence == "heartbeat 0 s ago"
    assert (running.editable, running.risks, running.detail.job.note) == (False, [], "half way")
    assert stopped.owner is None
    assert stopped.editable
    assert any("FatalError" in risk for risk in stopped.risks)
    assert await desk.reads.payload(job.id) == job.payload
    with pytest.raises(OperationError, match="there is no job"):
        await desk.reads.job(new_id())


async def test_a_large_payload_is_cut_and_says_so(desk: Desk, session: Session) -> None:
    session.enqueue_jobs([job := new_job(payload='{"blob":"' + "x" * 300_000 + '"}')])

    found = await desk.reads.job(job.id)

    assert found.payload_cut
    assert len(found.payload) == 200_000
    assert found.payload_bytes == len(job.payload)
    assert len(await desk.reads.payload(job.id)) == len(job.payload)


async def test_numbers_that_a_browser_would_change_are_shown_as_stored(desk: Desk, session: Session) -> None:
    session.enqueue_jobs([job := new_job(payload='{"id":123456789012345678901234567890}')])

    assert (await desk.reads.job(job.id)).payload == job.payload


async def test_workers_show_what_they_run(desk: Desk, session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder, silent = Holder(session), Holder(session, "other")
    held = holder.take(2)
    lab.age_worker(silent.id, 90_000)

    rows = {row.worker.worker_id: row for row in await desk.reads.workers()}

    assert [job.id for job in rows[holder.id].jobs] == sorted(one.id for one in held)
    assert (rows[holder.id].alive, rows[silent.id].alive) == (True, False)


async def test_the_log_is_filtered_by_actor_and_action(desk: Desk, session: Session) -> None:
    for number in range(6):
        session.set_queue(f"q{number}", QueueChange(paused=True), "anna" if number % 2 else "bob")

    first = await desk.reads.audit(actor="ANNA", limit=2)
    second = await desk.reads.audit(actor="ANNA", limit=2, after=first.after)

    assert [entry.target for entry in [*first.entries, *second.entries]] == ["q5", "q3", "q1"]
    assert second.after is None
    assert (await desk.reads.audit(action="nothing")).entries == []
    assert [entry.target for entry in (await desk.reads.audit(target="q2")).entries] == ["q2"]


async def test_a_preview_of_one_kind_of_error_names_its_jobs_only(desk: Desk, session: Session) -> None:
    session.enqueue_jobs(new_jobs(4))
    holder = Holder(session)
    held = holder.take(4)
    fail(session, holder, held[:3])
    fail(session, holder, held[3:], "OSError")
    where = Search(pillar=Pillar.DLQ, error_type="KeyError")

    found = await desk.reads.preview(where, "resurrect", 2)
    every = await desk.reads.preview(Search(pillar=Pillar.DLQ), "purge")

    assert (found.matched, found.more, len(found.ids)) == (3, False, 2)
    assert set(found.ids) <= {one.id for one in held[:3]}
    assert every.matched == 4
    with pytest.raises(OperationError, match="for the DLQ"):
        await desk.reads.preview(Search(), "drop")


async def test_settings_are_shown_without_secrets(desks: OpenDesk) -> None:
    desk = desks(token="t" * 40)

    rows = {row.path: row.value for row in await desk.reads.settings()}

    assert rows["deck.token"] == "***"
    assert rows["deck.lag_warning"] == "5s"


async def test_counts_above_ten_thousand_serve_for_five_seconds_and_say_their_age(
    desk: Desk, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 50.0
    monkeypatch.setattr(desk.reads, "_shared", Shared(lambda: now))
    session.enqueue_jobs(new_jobs(3))
    monkeypatch.setattr(board, "LARGE", 2)

    first = (await desk.reads.overview()).pending
    session.enqueue_jobs(new_jobs(1))
    now += 4.0
    desk.reads._changed()
    aged = (await desk.reads.overview()).pending
    now += 1.0
    fresh = (await desk.reads.overview()).pending

    assert (first.value, first.age_ms) == (3, 0)
    assert (aged.value, aged.age_ms) == (3, 4_000)
    assert (fresh.value, fresh.age_ms) == (4, 0)


async def test_whoever_asks_the_same_within_a_second_shares_one_answer() -> None:
    now, reads = 10.0, 0
    shared = Shared(lambda: now)

    async def read() -> int:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        return reads

    assert [answer for answer, _ in await asyncio.gather(*(shared.ask("a", read) for _ in range(5)))] == [1] * 5
    assert (await shared.ask("b", read))[0] == 2
    now += 0.5
    assert await shared.ask("a", read) == (1, 0.5)
    now += 0.5
    assert (await shared.ask("a", read))[0] == 3
    shared.forget()
    assert (await shared.ask("a", read))[0] == 4


async def test_an_error_serves_nobody_else() -> None:
    shared = Shared()

    async def fails() -> int:
        raise OperationError("no")

    async def works() -> int:
        return 1

    with pytest.raises(OperationError):
        await shared.ask("a", fails)
    assert (await shared.ask("a", works))[0] == 1


def row(**fields: Any) -> SeriesRow:
    """Outcomes of a step."""
    base = SeriesRow(
        start=datetime(2026, 5, 1, tzinfo=UTC), queue=QUEUE, outcome=Outcome.SUCCEEDED, reason=-1, count=1, duration_ms=0,
        lag=(0,) * figures.STEPS,
    )  # fmt: skip
    return msgspec.structs.replace(base, **fields)


def test_percentiles_means_and_maxima_of_a_histogram() -> None:
    counts = [0] * figures.STEPS
    counts[3], counts[6] = 95, 5

    assert figures.percentile_ms(counts, 0.95) == 64
    assert figures.percentile_ms(counts, 0.96) == 4_096
    assert figures.highest_ms(counts) == 4_096
    assert figures.mean_ms(counts) == pytest.approx((95 * 40 + 5 * 2_560) / 100)
    assert figures.percentile_ms([0] * figures.STEPS, 0.95) is None
    assert figures.percentile_ms([*[0] * 11, 1], 0.95) == 1_048_576


def test_rates_count_whole_steps_and_the_one_under_way() -> None:
    current = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [row(start=current - timedelta(seconds=5 * back), count=10) for back in range(20)]
    series = Series(current + timedelta(seconds=2), current, rows)

    recent, seconds = figures.recent(series, 60)

    assert seconds == 62
    assert figures.count(recent, Outcome.SUCCEEDED) == 130


# ── the audit log by two filters ──────────────────────────────────────────────────────────────────────────────────────
async def test_one_filter_is_one_call_however_rare_and_two_are_bounded_and_say_so(
    desk: Desk, session: Session, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chokaq.deck.trail.LOOKED_AT", 400)
    session.force_circuit("t.v1", Forced.OPEN, "anna")
    session.force_circuit("t.v1", Forced.OPEN, "carl")
    now = lab.rows("AuditLog")[0]["AtUtc"]
    at = str(now) if lab.kind == "sqlite" else "SYSUTCDATETIME()"
    values = ", ".join(f"({at}, 'anna', 'set_queue', 'q{number}')" for number in range(450))
    lab.execute(f"INSERT INTO {{AuditLog}} (AtUtc, Actor, Action, Target) VALUES {values}")

    calls: list[object] = []
    counted = CountingAudit(desk, calls, monkeypatch)
    alone = await desk.reads.audit(actor="carl")
    assert ([entry.action for entry in alone.entries], alone.after, alone.partial) == (["force_circuit"], None, False)
    assert counted.calls == 1

    first = await desk.reads.audit(actor="anna", action="Force_Circuit")
    assert (first.entries, first.partial, counted.calls) == ([], True, 3)
    rest = await desk.reads.audit(actor="anna", action="Force_Circuit", after=first.after)
    assert ([entry.target for entry in rest.entries], rest.after, rest.partial) == (["t.v1"], None, False)
    both = await desk.reads.audit(target="t.v1", actor="CARL", action="force_circuit")
    assert [entry.actor for entry in both.entries] == ["carl"]


class CountingAudit:
    """Counts how often a desk's sessions are asked for the audit log."""

    def __init__(self, desk: Desk, calls: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls = calls
        kind = type(desk._lanes.store.session())
        asked = kind.list_audit

        def counting(session: Any, *args: Any, **options: Any) -> Any:
            calls.append(args)
            return asked(session, *args, **options)

        monkeypatch.setattr(kind, "list_audit", counting)

    @property
    def calls(self) -> int:
        """So far."""
        return len(self._calls)


@pytest.mark.parametrize(
    "where",
    [
        {"actor": "x" * 101},
        {"actor": "😀" * 51},
        {"actor": "a\ud800"},
        {"actor": "a\0"},
        {"action": "ü"},
        {"action": "x" * 51},
    ],
)
async def test_what_nobody_can_be_called_finds_nothing(desk: Desk, session: Session, where: dict[str, str]) -> None:
    session.force_circuit("t.v1", Forced.OPEN, "anna")
    assert (await desk.reads.audit(**where)).entries == []  # type: ignore[arg-type]


# ── priorities, circuits over time ────────────────────────────────────────────────────────────────────────────────────
async def test_the_priorities_of_a_queue_tell_which_one_starves(desk: Desk, session: Session, lab: Lab) -> None:
    session.enqueue_jobs([*new_jobs(3, priority=90), starving := new_job(priority=1), new_job(delay_ms=60_000)])
    lab.age(starving.id, "DueAtUtc", 45_000)

    high, low = await desk.reads.priorities(QUEUE)

    assert (high.priority.priority, high.priority.waiting, high.lag) == (90, 3, "ok")
    assert (low.priority.priority, low.priority.waiting, low.lag) == (1, 1, "critical")
    assert low.priority.oldest_due_ms >= 45_000
    with pytest.raises(OperationError, match="there is no queue 'mali' here"):
        await desk.reads.priorities("mali")


async def test_the_history_of_a_type_is_a_list_and_a_line(desk: Desk, session: Session) -> None:
    holder = Holder(session)
    for generation, state in enumerate((CircuitState.OPEN, CircuitState.HALF_OPEN), 1):
        ago = 60_000 // generation
        told = CircuitChange(type_key="t.v1", state=state, failures=5, generation=generation, changed_ms=ago)
        session.report_circuits(holder.worker, [told])
    session.force_circuit("t.v1", Forced.CLOSED, "anna", "enough")

    short = await desk.reads.circuit_events("T.v1")
    every = await desk.reads.circuit_events("t.v1", tries=True)
    line = await desk.reads.circuit_timeline("T.v1")

    assert [event.actor for event in short.events] == ["anna", None]
    assert len(every.events) == 3
    assert [step.workers for step in line.steps] == [0, 1]
    assert (line.type_key, line.cut, [order.actor for order in line.orders]) == ("t.v1", False, ["anna"])
    assert line.end - line.start >= timedelta(hours=24)
    assert (await desk.reads.circuit_timeline("other.v1")).steps[0].workers == 0
    with pytest.raises(OperationError, match="is not a type key"):
        await desk.reads.circuit_timeline("ü")
