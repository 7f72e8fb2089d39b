"""The application: imported with clear errors, and described without importing it here."""

import os
import sys
from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_app, load_settings, load_worker_settings, settings_for_app
from chokaq.config.application import AppFacts
from chokaq.config.complete import with_policies
from chokaq.config.describe import ApplicationError, Description, describe_app
from chokaq.config.settings import Settings

APP = """
from dataclasses import dataclass
from chokaq import ChokaQ, JobContext

print("noise on stdout")
app = ChokaQ()


@app.job("email.send.v1", queue="emails")
@dataclass
class SendEmail:
    to: str


@app.job("report.make.v1", queue="reports")
@dataclass
class MakeReport:
    name: str


@app.handler(SendEmail)
async def send(job: SendEmail, ctx: JobContext) -> None: ...


@app.pipe("stream")
async def stream(type_key: str, payload: str, ctx: JobContext) -> None: ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a YAML file; the working directory is another one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("CHOKAQ_CONFIG", raising=False)
    return tmp_path


def module(folder: Path, name: str, text: str) -> None:
    """A module beside the YAML, and the YAML that names its `app`."""
    (folder / f"{name}.py").write_text(text)
    (folder / "chokaq.yaml").write_text(f"app: {name}:app\n")


def test_an_application_is_described_without_being_imported_here(folder: Path) -> None:
    module(folder, "shop_described", APP)
    facts = describe_app(load_settings(folder / "chokaq.yaml", {}))
    assert facts.queues == ["emails", "reports", "stream"]
    assert facts.jobs == {"email.send.v1": "emails", "report.make.v1": "reports"}
    assert (facts.handled, facts.pipes) == (["email.send.v1"], ["stream"])
    assert "shop_described" not in sys.modules


def test_a_worker_without_queues_in_its_yaml_serves_those_of_the_application(folder: Path) -> None:
    module(folder, "shop_served", APP)
    (folder / "chokaq.yaml").write_text("app: shop_served:app\ndefaults: {max_workers: 3, max_attempts: 9}\n")
    settings = load_worker_settings(folder / "chokaq.yaml", {})
    assert list(settings.queues) == ["emails", "reports", "stream"]
    assert {(queue.name, queue.max_workers, queue.policy.max_attempts) for queue in settings.queues.values()} == {
        ("emails", 3, 9),
        ("reports", 3, 9),
        ("stream", 3, 9),
    }
    assert settings.policy("emails", "any").max_attempts == 9


def test_policies_given_in_code_are_known_to_a_worker_and_the_yaml_wins_over_them(folder: Path) -> None:
    code = """
from datetime import timedelta
from chokaq import ChokaQ
app = ChokaQ()
app.job("Mail.v1", queue="emails", on_crash="retry", max_attempts=7, execution_timeout=timedelta(minutes=2))(dict)
app.job("plain.v1", queue="emails")(dict)
"""
    module(folder, "shop_policies", code)
    (folder / "chokaq.yaml").write_text(
        "app: shop_policies:app\n"
        "queues: {emails: {crash_limit: 9, max_attempts: 2}}\n"
        "types: {mail.v1: {max_attempts: 5}}\n"
    )
    settings = load_worker_settings(folder / "chokaq.yaml", {})
    assert settings.registered == {"mail.v1": {"on_crash": "retry", "max_attempts": 7, "execution_timeout": 120.0}}
    mail = settings.policy("emails", "Mail.v1")
    assert (mail.on_crash, mail.max_attempts, mail.crash_limit, mail.execution_timeout) == ("retry", 5, 9, 120.0)
    assert settings.policy("emails", "plain.v1").max_attempts == 2
    app = load_app("shop_policies:app", folder)
    with app.bound_to(settings):
        assert app.policy("emails", "Mail.v1") == mail


def test_a_policy_that_no_worker_can_follow_is_an_error_with_its_type(folder: Path) -> None:
    code = "from chokaq import ChokaQ\napp = ChokaQ()\napp.job('m.v1', queue='q', retry_max_delay=float('inf'))(dict)\n"
    module(folder, "shop_endless", code)
    settings = load_settings(folder / "chokaq.yaml", {})
    with pytest.raises(ApplicationError, match=r"app: .*retry_max_delay must be a duration"):
        with_policies(settings, describe_app(settings))


def test_a_description_can_be_left_to_whoever_reaps_the_process(folder: Path) -> None:
    module(folder, "shop_reaped", APP)
    description = Description(load_settings(folder / "chokaq.yaml", {}))
    _, status = os.waitpid(description.pid, 0)
    assert description.ended(os.waitstatus_to_exitcode(status)).queues == ["emails", "reports", "stream"]


def test_an_application_that_hangs_is_given_up_and_its_process_ended(folder: Path) -> None:
    module(folder, "shop_hangs", "import time\ntime.sleep(3600)\n")
    description = Description(load_settings(folder / "chokaq.yaml", {}))
    with pytest.raises(ApplicationError, match=r"app: importing shop_hangs:app took longer than 0\.5 s"):
        description.wait(0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(description.pid, 0)


def test_the_same_from_an_application_at_hand(folder: Path) -> None:
    module(folder, "shop_at_hand", APP)
    app = load_app("shop_at_hand:app", folder)
    settings = load_settings(folder / "chokaq.yaml", {})
    assert list(settings_for_app(settings, app).queues) == ["emails", "reports", "stream"]
    (folder / "chokaq.yaml").write_text("app: shop_at_hand:app\nqueues: {only: {}}\n")
    named = load_settings(folder / "chokaq.yaml", {})
    assert settings_for_app(named, app) is named


def test_a_worker_can_be_narrowed_to_some_queues(folder: Path) -> None:
    module(folder, "shop_narrowed", APP)
    (folder / "chokaq.yaml").write_text("app: shop_narrowed:app\nqueues: {a: {}, b: {}, c: {}}\n")
    assert list(load_worker_settings(folder / "chokaq.yaml", {"CHOKAQ_QUEUES": "c, a"}).queues) == ["c", "a"]
    with pytest.raises(ConfigError, match=r"\$CHOKAQ_QUEUES: names d; the queues here are a, b, c"):
        load_worker_settings(folder / "chokaq.yaml", {"CHOKAQ_QUEUES": "d"})


def test_a_worker_needs_an_application_and_something_to_serve(folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("queues: {a: {}}\n")
    with pytest.raises(ConfigError, match="app: is not set; a worker needs it"):
        load_worker_settings(folder / "chokaq.yaml", {})
    module(folder, "shop_empty", "from chokaq import ChokaQ\napp = ChokaQ()\n")
    with pytest.raises(ConfigError, match="nothing to serve"):
        load_worker_settings(folder / "chokaq.yaml", {})
    (folder / "chokaq.yaml").write_text("app: shop_nowhere:app\nqueues: {a: {}}\n")
    with pytest.raises(ApplicationError, match="there is no module shop_nowhere"):
        load_worker_settings(folder / "chokaq.yaml", {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("shop_bad_import", "import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("shop_raises", "x = 1\nraise ValueError('bad thing')\n", "ValueError: bad thing"),
        ("shop_exits", "import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("shop_syntax", "def f(:\n", "SyntaxError: "),
        (
            "shop_no_app",
            "from chokaq import ChokaQ\nother = ChokaQ()\n",
            "no attribute 'app'; ChokaQ objects there: other",
        ),
        ("shop_other", "app = 5\n", "is of type int, not a ChokaQ application"),
        (
            "shop_twice",
            "from chokaq import ChokaQ\napp = ChokaQ()\napp.job('a', queue='q')(dict)\napp.job('A', queue='q')(dict)\n",
            "RegistrationError",
        ),
    ],
)
def test_what_is_wrong_with_an_application_is_one_line_with_its_place(
    folder: Path, name: str, text: str, message: str
) -> None:
    module(folder, name, text)
    with pytest.raises(ConfigError) as caught:
        load_app(f"{name}:app", folder)
    assert str(caught.value).startswith("app: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    if "failed" in str(caught.value):
        assert f"{name}.py, line " in str(caught.value)


def test_a_module_that_is_not_there_is_told_apart_from_one_that_fails(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no module shop_absent.*PYTHONPATH"):
        load_app("shop_absent.jobs:app", folder)


def test_the_error_of_an_application_that_is_described_comes_through(folder: Path) -> None:
    module(folder, "shop_breaks", "raise RuntimeError('no licence')\n")
    with pytest.raises(ConfigError, match=r"chokaq\.yaml: app: importing shop_breaks failed: RuntimeError: no licence"):
        describe_app(load_settings(folder / "chokaq.yaml", {}))
    module(folder, "shop_dies", "import os\nos._exit(9)\n")
    with pytest.raises(ConfigError, match="ended the process with exit code 9"):
        describe_app(load_settings(folder / "chokaq.yaml", {}))


def test_a_policy_that_an_application_describes_obeys_the_rules_of_the_yaml() -> None:
    facts = AppFacts(queues=["q"], policies={"t": {"execution_timeout": 0}})
    with pytest.raises(ApplicationError, match="job type t is wrong: execution_timeout must be a duration"):
        with_policies(Settings(), facts)
