"""What an application says its exceptions mean decides about its jobs; secrets are taken out of what is stored of them."""

from collections.abc import Callable

import msgspec
import pytest
from structlog.testing import capture_logs

from chokaq import ChokaQ, Profile, RegistrationError, Throttled
from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.classifier import Opinion
from chokaq.lifecycle.states import FailureReason, JobStatus

from .harness import QUEUE, House, Send, eventually


class Missing(Exception):
    """An error of the application."""


class Busy(Exception):
    """A client library's way to ask for patience."""

    retry_after = 77.25


def raising(house: House, error: Exception) -> None:
    """The first attempt of every job raises it."""

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise error


async def settle(house: House) -> str:
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.completed >= 1, "settled")
    return job


async def test_a_class_the_application_calls_fatal_stops_its_job_at_once(house: House) -> None:
    house.app.classify(fatal=Missing)
    raising(house, Missing("user 5"))
    job = await settle(house)
    view = house.view(job)
    assert (view.failure_reason, view.attempt_count) == (FailureReason.FATAL_ERROR, 1)


async def test_a_built_in_fatal_error_is_retried_when_the_application_calls_it_transient(house: House) -> None:
    house.app.classify(transient=TypeError)
    raising(house, TypeError("a lazy import of a rolling deploy"))
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    assert [row["FailureReason"] for row in house.attempts(job)] == [FailureReason.TRANSIENT]


async def test_a_throttled_class_is_retried_after_exactly_what_it_asks_for(house: House) -> None:
    house.app.classify(throttled=Busy)
    raised = RuntimeError("outer")
    raised.__cause__ = Busy()
    raising(house, raised)
    job = await settle(house)
    [attempt] = house.attempts(job)
    assert attempt["FailureReason"] == FailureReason.THROTTLED
    assert house.lab.row(job)["DueAtUtc"] - attempt["AtUtc"] == 77_250


@pytest.mark.parametrize(
    ("asked", "waited"), [(1.2345, 1_235), (0.0001, 1), (1.1, 1_100), (3599.9996, 3_600_000), (9e9, 3_600_000)]
)
async def test_throttling_is_honoured_to_the_millisecond_and_capped(house: House, asked: float, waited: int) -> None:
    raising(house, Throttled(asked))
    job = await settle(house)
    [attempt] = house.attempts(job)
    # After a millisecond the second attempt may have succeeded already.
    [row] = [*house.lab.rows("JobsHot"), *house.lab.rows("JobsArchive")]
    assert row["DueAtUtc"] - attempt["AtUtc"] == waited


async def test_the_rules_of_a_type_come_before_those_of_its_profile_and_of_the_application(house: House) -> None:
    class Own(msgspec.Struct):
        kind: str

    profile = Profile(queue=QUEUE)
    profile.classify(fatal=KeyError)
    profile.job("own.v1", Own, fatal=Missing, transient=(NameError,))

    @profile.handler(Own)
    async def own(job: Own) -> None:
        raise {"missing": Missing, "name": NameError, "key": KeyError, "index": IndexError}[job.kind]

    house.app.classify(transient=Missing, fatal=(IndexError, NameError))
    house.app.include(profile)
    raising(house, KeyError("not of the profile"))
    ids = {
        kind: house.enqueue(type_key="own.v1", payload=f'{{"kind":"{kind}"}}')[0]
        for kind in ("missing", "name", "key", "index")
    }
    (other,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 4, "stopped")
        await eventually(lambda: child.counts.succeeded == 1, "the other type is not of the profile")
    reasons = {kind: house.view(job).failure_reason for kind, job in ids.items()}
    assert reasons == {
        "missing": FailureReason.FATAL_ERROR,
        "name": FailureReason.TRANSIENT,
        "key": FailureReason.FATAL_ERROR,
        "index": FailureReason.FATAL_ERROR,
    }
    assert len(house.attempts(ids["name"])) == 3
    assert house.view(other).status is JobStatus.SUCCEEDED


async def test_a_classifier_of_the_type_and_one_of_the_application(build: Callable[..., House]) -> None:
    house = build(policy=Policy(max_attempts=1))
    house.app.job("own.v1", dict, queue=QUEUE, classifier=lambda error: "fatal" if "5" in str(error) else None)

    @house.app.classifier
    def whole(error: BaseException) -> Opinion:
        return "throttled" if isinstance(error, Missing) else None

    @house.app.handler("own.v1")
    async def own(job: dict[str, int]) -> None:
        raise Missing(f"user {job['n']}")

    raising(house, Missing("user 5"))
    of_type = [house.enqueue(type_key="own.v1", payload=f'{{"n":{n}}}')[0] for n in (5, 6)]
    (of_app,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 3, "stopped")
    assert [house.view(job).failure_reason for job in (*of_type, of_app)] == [
        FailureReason.FATAL_ERROR,
        FailureReason.THROTTLED,
        FailureReason.THROTTLED,
    ]


async def test_a_classifier_that_raises_is_logged_and_the_built_in_rules_decide(house: House) -> None:
    @house.app.classifier
    def broken(error: BaseException) -> Opinion:
        raise LookupError("a bug")

    raising(house, TypeError("a bug too"))
    with capture_logs() as logs:
        job = await settle(house)
    assert house.view(job).failure_reason is FailureReason.FATAL_ERROR
    [log] = [log for log in logs if log["event"] == "classifier_failed"]
    assert "broken" in log["classifier"]
    assert (log["error"], log["log_level"]) == ("LookupError", "error")


async def test_c14_an_unreadable_payload_stays_fatal_beside_rules_about_other_errors(house: House) -> None:
    house.app.classify(transient=(KeyError, OSError))
    raising(house, KeyError())
    (bad,) = house.enqueue(payload='{"n":"seven"}')
    async with house.child() as child:
        await eventually(lambda: child.counts.failed == 1, "stopped")
    assert house.view(bad).failure_reason is FailureReason.FATAL_ERROR


def test_rules_that_contradict_each_other_are_refused_where_they_are_written() -> None:
    app = ChokaQ()
    app.classify(fatal=Missing)
    with pytest.raises(RegistrationError, match="Missing stands in two lists"):
        app.classify(transient=Missing)
    with pytest.raises(RegistrationError, match="exception classes"):
        app.job("a.v1", dict, fatal="Missing")  # type: ignore[call-overload]
    app.classifier(lambda _error: None)
    with pytest.raises(RegistrationError, match="one function decides"):
        app.classifier(lambda _error: None)


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────────
class Card4111(Exception):
    """A class whose very name holds what must not be stored."""


async def test_secrets_are_taken_out_of_type_message_and_trace_before_they_are_stored(
    build: Callable[..., House],
) -> None:
    house = build(policy=Policy(max_attempts=1))
    house.settings = msgspec.structs.replace(house.settings, redact=(r"4\d{3,15}", r"sk_[a-z]+"))
    house.app.bind(house.settings)
    raising(house, Card4111("card 4111111111111111 by sk_live at https://ann:pa55@bank.test/x"))
    job = await settle(house)
    view, [attempt] = house.view(job), house.attempts(job)
    assert view.error_message == "card *** by *** at https://ann:***@bank.test/x"
    assert view.error_type is not None
    assert view.error_type.endswith("Card***")
    stored = " ".join(str(value) for value in [*attempt.values(), view.error_type, view.error_message])
    for secret in ("4111", "sk_live", "pa55"):
        assert secret not in stored


async def test_passwords_in_urls_are_always_taken_out_and_other_patterns_only_when_asked_for(house: House) -> None:
    raising(house, ConnectionError("mssql://sa:S3cret@db/x PWD={a;b} card 4111111111111111"))
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    [attempt] = house.attempts(job)
    assert attempt["ErrorMessage"] == "mssql://sa:***@db/x PWD=*** card 4111111111111111"
    assert "S3cret" not in attempt["Trace"]


async def test_c45_a_secret_at_the_edge_of_what_is_kept_is_found_before_the_text_is_cut(house: House) -> None:
    house.settings = msgspec.structs.replace(house.settings, redact=("SECRET[0-9]{20}",))
    house.app.bind(house.settings)
    raising(house, ConnectionError("x" * 3_985 + "SECRET" + "7" * 20 + "y" * 50_000))
    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "second attempt")
    [attempt] = house.attempts(job)
    assert "SECRET" not in attempt["ErrorMessage"] + attempt["Trace"]
    assert len(attempt["ErrorMessage"]) <= 4_000
