"""Contracts under type keys, singly and in profiles."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict

import msgspec
import pytest

from chokaq import ChokaQ, JobContext, PayloadError, Profile, RegistrationError, UnknownJobType
from chokaq.jobs.enqueue import Enqueue, compose
from chokaq.jobs.errors import EnqueueError


class Mail(msgspec.Struct):
    to: str = ""


@dataclass
class Note:
    text: str


@pytest.fixture
def app() -> ChokaQ:
    return ChokaQ()


def resolved(app: ChokaQ, job: object, payload: object = None, **options: Any) -> tuple[str, str]:
    new = compose(app.registry, Enqueue(job, payload, **options), 1_000_000)
    return new.type_key, new.payload


def test_a_key_is_taken_whatever_its_case(app: ChokaQ) -> None:
    app.job("mail.send.v1", Mail)
    with pytest.raises(RegistrationError, match=r"'Mail\.SEND\.v1' is registered twice: for Mail and for Note"):
        app.job("Mail.SEND.v1", Note)
    assert app.registry.find("MAIL.send.V1") is app.registry.jobs[0]


def test_several_keys_may_name_one_type_and_the_first_is_used_to_enqueue(app: ChokaQ) -> None:
    app.job("mail.v2", Mail)
    app.job("mail.v1", Mail)
    assert resolved(app, Mail("a")) == ("mail.v2", '{"to":"a"}')
    assert resolved(app, "MAIL.v1", Mail("a")) == ("mail.v1", '{"to":"a"}')


def test_plain_data_for_a_typed_key_is_checked(app: ChokaQ) -> None:
    app.job("note.v1", Note)
    assert resolved(app, "note.v1", {"text": "x"}) == ("note.v1", '{"text":"x"}')
    with pytest.raises(PayloadError, match="text"):
        resolved(app, "note.v1", {})


def test_dicts_are_told_apart_by_their_key(app: ChokaQ) -> None:
    class Typed(TypedDict):
        n: int

    app.job("a.v1", dict)
    app.job("b.v1", dict)
    app.job("c.v1", Typed)
    assert resolved(app, "b.v1", {"x": 1}) == ("b.v1", '{"x":1}')
    assert resolved(app, "a.v1") == ("a.v1", "{}")
    assert resolved(app, "c.v1", {"n": 1}) == ("c.v1", '{"n":1}')
    with pytest.raises(UnknownJobType, match=r"enqueue\(\"the.type.key\", \{…\}\)"):
        resolved(app, {"x": 1})
    with pytest.raises(EnqueueError, match="takes a dict, not int"):
        resolved(app, "a.v1", 5)


def test_an_unknown_type_names_the_way_out(app: ChokaQ) -> None:
    with pytest.raises(UnknownJobType, match=r"Mail is not registered .* put @app.job\("):
        resolved(app, Mail())
    app.job("mail.v1", Mail)
    with pytest.raises(UnknownJobType, match=r"'mail.v9' is not registered .*\(registered: mail.v1\)"):
        resolved(app, "mail.v9", {})
    with pytest.raises(EnqueueError, match="a payload is given beside a job"):
        resolved(app, Mail(), {})


def test_a_pipe_queue_takes_keys_that_nobody_registered(app: ChokaQ) -> None:
    @app.pipe("stream")
    async def take(type_key: str, payload: str) -> None: ...

    assert resolved(app, "anything.v7", {"x": 1}, queue="stream") == ("anything.v7", '{"x":1}')
    with pytest.raises(UnknownJobType):
        resolved(app, "anything.v7", {"x": 1}, queue="other")


@pytest.mark.parametrize("contract", [int, list, object, "text"])
def test_only_structs_dataclasses_and_dicts_are_contracts(app: ChokaQ, contract: Any) -> None:
    with pytest.raises(RegistrationError, match=r"use a msgspec\.Struct, a dataclass or dict"):
        app.job("x.v1", contract)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queue": "a b\n"}, "queue"),
        ({"priority": -1}, "priority"),
        ({"scope": "always"}, "scope"),
        ({"max_atempts": 3}, "unknown option 'max_atempts'"),
        ({"max_attempts": "three"}, "policy is wrong.*max_attempts"),
        ({"max_attempts": 0}, "max_attempts must be a whole number from 1 to 10,000, got 0"),
        ({"execution_timeout": 0}, "execution_timeout must be a duration"),
        ({"execution_timeout": timedelta(seconds=-5)}, "execution_timeout must be a duration"),
        ({"hard_limit_grace": -1}, "hard_limit_grace must be a duration"),
        ({"retry_base_delay": float("nan")}, "retry_base_delay must be a duration"),
        ({"retry_base_delay": 5, "retry_max_delay": 2}, "retry_max_delay must be at least retry_base_delay"),
    ],
)
def test_a_wrong_option_of_a_registration_is_named(app: ChokaQ, options: Any, says: str) -> None:
    with pytest.raises(RegistrationError, match=says):
        app.job("x.v1", Mail, **options)


def test_type_keys_are_printable_ascii(app: ChokaQ) -> None:
    with pytest.raises(RegistrationError, match="type key"):
        app.job("größe.v1", Mail)


def test_a_contract_has_one_handler(app: ChokaQ) -> None:
    app.job("mail.v1", Mail)

    @app.handler(Mail)
    async def first(job: Mail) -> None: ...

    with pytest.raises(RegistrationError, match=r"Mail has two handlers: .*first and .*second"):

        @app.handler(Mail)
        async def second(job: Mail) -> None: ...


def test_a_handler_of_a_key_stands_before_that_of_its_contract(app: ChokaQ) -> None:
    app.job("mail.v1", Mail)
    app.job("mail.v2", Mail)

    @app.handler(Mail)
    async def general(job: Mail) -> None: ...

    @app.handler("Mail.V2")
    async def special(job: Mail) -> None: ...

    assert [app.registry.handler_of(job) for job in app.registry.jobs] == [general, special]


def test_a_handler_for_dict_must_name_its_key(app: ChokaQ) -> None:
    with pytest.raises(RegistrationError, match="plain dicts are told apart by type key only"):

        @app.handler(dict)
        async def take(job: dict[str, Any]) -> None: ...


def test_handlers_of_nothing_are_reported(app: ChokaQ) -> None:
    @app.handler(Mail)
    async def send(job: Mail) -> None: ...

    assert len(app.registry.stray_handlers()) == 1
    assert "is for Mail, which is not registered" in app.registry.stray_handlers()[0]


def test_a_profile_brings_its_registrations_and_defaults() -> None:
    profile = Profile("mail", queue="emails", priority=3)

    @profile.job("mail.v1", max_attempts=9, execution_timeout=timedelta(minutes=2))
    class Local(msgspec.Struct):
        to: str

    @profile.handler(Local)
    async def send(job: Local, ctx: JobContext) -> None: ...

    @profile.pipe("stream")
    async def take(type_key: str, payload: str) -> None: ...

    app = ChokaQ()
    app.include(profile)
    (job,) = app.registry.jobs
    assert (job.queue, job.priority, job.policy) == ("emails", 3, {"max_attempts": 9, "execution_timeout": 120.0})
    assert app.registry.handler_of(job) is send
    assert app.registry.queues == {"emails", "stream"}


def test_a_profile_does_not_change_after_it_was_included(app: ChokaQ) -> None:
    profile = Profile()
    app.include(profile)
    ChokaQ().include(profile)
    with pytest.raises(RegistrationError, match="already been included"):
        profile.job("mail.v1", Mail)


def test_a_profile_may_not_bring_a_key_twice(app: ChokaQ) -> None:
    profile = Profile()
    profile.job("mail.v1", Mail)
    app.job("mail.v1", Note)
    with pytest.raises(RegistrationError, match="registered twice"):
        app.include(profile)


def test_middleware_is_a_coroutine_function(app: ChokaQ) -> None:
    def layer(_job: Any, _ctx: Any, _next: Any) -> None:
        raise AssertionError("never called")

    with pytest.raises(RegistrationError, match=r"middleware .*layer must be `async def"):
        app.middleware(layer)  # type: ignore[type-var]
