"""Several databases: `databases:` instead of `database:`, and queues that name one."""

from pathlib import Path

import pytest

from chokaq.config import ConfigError, Settings, load_settings
from chokaq.config.application import AppFacts
from chokaq.config.checks import check_settings
from chokaq.config.complete import complete
from chokaq.config.load import load
from chokaq.config.show import redacted, shown_settings
from chokaq.store.options import DatabaseSettings

TWO = """
databases:
  main: mssql://sa:hunter2@host/jobs
  archive: {url: sqlite:///other.db, retries: 7}
queues:
  emails: {max_workers: 20}
  reports: {max_workers: 3, database: archive}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, **environ: str) -> Settings:
    """The settings of a text."""
    path = Path.cwd() / "chokaq.yaml"
    path.write_text(text)
    return load_settings(path, environ)


def problems(text: str, **environ: str) -> list[str]:
    """What is wrong with a text, one line each."""
    with pytest.raises(ConfigError) as caught:
        read(text, **environ)
    return [str(problem) for problem in caught.value.problems]


def test_a_queue_lives_in_the_database_that_it_names_else_in_main(tmp_path: Path) -> None:
    settings = read(TWO)
    archive = DatabaseSettings(url=f"sqlite:///{tmp_path}/other.db", retries=7)
    assert settings.several
    assert list(settings.databases) == ["main", "archive"]
    assert settings.database == settings.databases["main"] == DatabaseSettings(url="mssql://sa:hunter2@host/jobs")
    assert settings.database_of("reports") == settings.databases["archive"] == archive
    assert settings.database_of("emails") == settings.database_of("never heard of") == settings.database
    assert [settings.database_name(queue) for queue in ("reports", "emails", "x")] == ["archive", "main", "main"]
    assert settings.queues["reports"].database == "archive"
    assert settings.here == "main"
    assert settings.at("archive").database == archive
    assert settings.at("archive").here == "archive"
    # Whoever works in one database still knows where everything is.
    assert settings.at("archive").database_of("emails") == settings.database


def test_without_one_called_main_the_first_is_the_default() -> None:
    text = "databases: {north: 'sqlite:///n.db', south: 'sqlite:///s.db'}\nqueues: {a: {}, b: {database: south}}\n"
    settings = read(text)
    assert settings.default_database == settings.here == settings.database_name("a") == "north"
    assert settings.database == settings.databases["north"]
    assert settings.places == {"a": "north", "b": "south"}


def test_the_example_of_the_documentation_loads() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "databases.md").read_text()
    settings = read(text.partition("```yaml\n")[2].partition("```")[0])
    assert {queue: settings.database_name(queue) for queue in settings.queues} == {
        "emails": "main",
        "messages": "main",
        "reports": "archive",
    }


def test_the_deck_shows_one_that_exists() -> None:
    assert read(TWO + "deck: {database: archive}\n").deck.database == "archive"
    assert problems(TWO + "deck: {database: x}\n") == [
        "deck.database: there is no database 'x'; `databases:` names main, archive"
    ]
    assert problems("deck: {database: main}\n")[0].startswith("deck.database: there is no database 'main'")


def test_database_alone_is_what_it_was(tmp_path: Path) -> None:
    settings = read("database: sqlite:///one.db\nqueues: {a: {}}\n")
    assert (settings.databases, settings.places, settings.several) == ({}, {}, False)
    assert settings.database_of("a") is settings.database
    assert settings.named_databases == {"main": settings.database}
    assert settings.at("main") is settings
    assert settings.database_path("main") == ("database",)


def test_one_alone_for_all_takes_every_queue_with_it() -> None:
    own = DatabaseSettings(url="sqlite:////tmp/own.db")
    settings = read(TWO).only(own)
    assert not settings.several
    assert settings.database_of("reports") == own


def test_a_worker_that_serves_a_part_knows_where_the_others_live() -> None:
    facts = AppFacts(queues=["emails", "reports"], jobs={})
    settings = complete(read(TWO), facts, {"CHOKAQ_QUEUES": "emails"})
    assert list(settings.queues) == ["emails"]
    assert settings.database_name("reports") == "archive"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TWO + "database: sqlite:///c.db\n", "database: give either `database:` or `databases:`, not both"),
        (
            TWO.replace("archive}", "archiv}"),
            "queues.reports.database: there is no database 'archiv'; did you mean archive?",
        ),
        (
            TWO.replace("archive}", "xyz}"),
            "queues.reports.database: there is no database 'xyz'; `databases:` knows main, archive",
        ),
        (
            "queues: {a: {database: main}}",
            "queues.a.database: there is no `databases:`, only one database: leave this out",
        ),
        ("databases: {main: null}", "databases.main: needs a URL"),
        ("databases: {main: {schema: x}}", "databases.main: needs a URL"),
        ("databases: {main: nowhere}", "databases.main: must be a URL"),
        ("databases: {main: 'postgres://h/d'}", "databases.main.url: `postgres` is not a store"),
        (
            "databases: {main: {url: 'sqlite:///a.db', retrys: 1}}",
            "databases.main.retrys: unknown option; did you mean retries?",
        ),
        ("databases: {'a b': 'sqlite:///a.db'}", 'databases["a b"]: a database\'s name is 1 to 40 letters'),
        ("databases: ['sqlite:///a.db']", "databases: must be a mapping"),
        ("databases: {a: 'sqlite:///x.db', b: 'sqlite:///./x.db'}", "databases.b: is the same database as a"),
        ("production: true\n" + TWO, "databases.archive.url: production: true refuses SQLite"),
        ("databases: {a: 'sqlite:///x.db'}\ndefaults: {database: a}", "defaults.database: unknown option"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_path(text: str, told: str) -> None:
    [problem] = problems(text)
    assert problem.startswith(told), problem


def test_no_message_holds_a_password() -> None:
    text = TWO.replace("main: mssql", "main: mysql") + "  x: {database: y}\n"
    assert len(problems(text)) == 1
    assert "hunter2" not in "".join(problems(text))
    settings = read(TWO)
    assert "hunter2" not in repr(redacted(settings))
    assert "hunter2" not in repr(shown_settings(load(Path("chokaq.yaml"), {})))


def test_the_variable_of_the_one_database_does_not_override_several() -> None:
    [problem] = problems(TWO, CHOKAQ_DATABASE_URL="sqlite:///elsewhere.db")
    assert problem.startswith("$CHOKAQ_DATABASE_URL: names one database, and the file has several")
    # The file may use the variable itself.
    text = TWO.replace("mssql://sa:hunter2@host/jobs", "${CHOKAQ_DATABASE_URL}")
    assert read(text, CHOKAQ_DATABASE_URL="mssql://u:p@h/d").database.url == "mssql://u:p@h/d"


def test_a_password_from_a_variable_is_encoded_in_each_url() -> None:
    text = "databases: {a: 'mssql://u:${PASSWORD}@h/one', b: {url: 'mssql://u:${PASSWORD}@h/two'}}"
    settings = read(text, PASSWORD="p@ss/word")
    assert settings.databases["a"].url == "mssql://u:p%40ss%2Fword@h/one"
    assert settings.databases["b"].url == "mssql://u:p%40ss%2Fword@h/two"


def test_every_option_of_each_database_is_shown_with_its_origin() -> None:
    read(TWO)
    rows = {row.path: (row.value, row.origin) for row in shown_settings(load(Path("chokaq.yaml"), {}))}
    assert rows["databases.main.url"] == ("mssql://sa:***@host/jobs", "chokaq.yaml:3")
    assert rows["databases.archive.retries"] == ("7", "chokaq.yaml:4")
    assert rows["databases.main.retries"] == ("3", "default")
    assert rows["queues.reports.database"] == ("archive", "chokaq.yaml:7")
    assert rows["queues.emails.database"] == ("null", "default")
    assert "database.url" not in rows


def test_a_database_without_a_queue_is_warned_of() -> None:
    unused = TWO.replace(", database: archive", "")
    assert [str(found) for found in check_settings(read(unused))] == [
        "databases.archive: no queue of this file lives here: no worker serves it, rescues its jobs or deletes its old rows"
    ]
    slow = TWO.replace("retries: 7", "lock_timeout: 40s")
    assert [found.path for found in check_settings(read(slow))] == ["databases.archive.lock_timeout"]
