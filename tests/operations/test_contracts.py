"""A payload is held against the contract of its type, here or in a process of its own."""

from pathlib import Path

import msgspec
import pytest

from chokaq import ChokaQ
from chokaq.config.errors import ConfigError
from chokaq.config.settings import Settings
from chokaq.operations import OperationError
from chokaq.operations.contracts import check_apart, check_by
from chokaq.store.records import JobView
from tests.support.fake_repairs import FakeRepairs

SHOP = """
import msgspec
from chokaq import ChokaQ

print("this must not reach the answer")
app = ChokaQ()


@app.job("mail.v1", queue="emails")
class Mail(msgspec.Struct):
    to: str
"""


class Mail(msgspec.Struct):
    """A contract."""

    to: str


def view(fake: FakeRepairs, type_key: str = "mail.v1", queue: str = "emails") -> JobView:
    """A stopped job."""
    return fake.jobs[fake.stopped(type_key=type_key, queue=queue)]


def test_whoever_holds_the_application_checks_by_its_registry(fake: FakeRepairs) -> None:
    app = ChokaQ()
    app.job("mail.v1", Mail, queue="emails")

    @app.pipe("raw")
    async def raw(type_key: str, payload: str) -> None: ...

    check = check_by(app.registry)
    check(view(fake, "MAIL.v1"), '{"to":"a@b","more":1}')
    check(view(fake, "anything", "raw"), "[]")
    with pytest.raises(OperationError, match=r"the payload of mail.v1 does not fit Mail: .*to.*; nothing was changed"):
        check(view(fake), "{}")
    with pytest.raises(OperationError, match=r"registers no job type 'gone\.v1'"):
        check(view(fake, "gone.v1"), "{}")


def test_the_configured_application_is_asked_in_a_process_of_its_own(tmp_path: Path, fake: FakeRepairs) -> None:
    (tmp_path / "shop_contracts.py").write_text(SHOP)
    check = check_apart(Settings(app="shop_contracts:app", source=tmp_path / "chokaq.yaml"))
    assert check is not None
    check(view(fake), '{"to":"a@b"}')
    with pytest.raises(OperationError, match=r"the payload of mail\.v1 does not fit Mail"):
        check(view(fake), '{"to":1}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_here\n", "importing shop_bad failed: ModuleNotFoundError"),
        ("import os\nos._exit(3)\n", "ended the process with exit code 3"),
    ],
)
def test_an_application_that_cannot_be_imported_is_named(
    tmp_path: Path, fake: FakeRepairs, text: str, message: str
) -> None:
    (tmp_path / "shop_bad.py").write_text(text)
    check = check_apart(Settings(app="shop_bad:app", source=tmp_path / "chokaq.yaml"))
    assert check is not None
    with pytest.raises(ConfigError, match=message):
        check(view(fake), "{}")


def test_without_an_application_there_is_nothing_to_check_by() -> None:
    assert check_apart(Settings()) is None
