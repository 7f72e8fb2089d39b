"""Variables: held out before the YAML is parsed, whatever they hold; encoded inside a URL; missing ones named by path."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.config import ConfigError, load_settings
from chokaq.config.load import load
from chokaq.config.variables import VariableError, fill, hold_out, put_back, resolve
from chokaq.store.url import DatabaseUrl

SECRETS = st.text(
    alphabet=st.characters(min_codepoint=1, max_codepoint=0xD7FF, blacklist_characters="\n\r\0"),
    min_size=1,
    max_size=30,
)


def write(folder: Path, text: str) -> Path:
    """A chokaq.yaml in a folder."""
    path = folder / "chokaq.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@given(SECRETS)
def test_any_password_survives_in_a_database_url(tmp_path_factory: pytest.TempPathFactory, secret: str) -> None:
    path = write(
        tmp_path_factory.mktemp("c"), "database: mssql://sa:${PASSWORD}@db.example/shop?encrypt=yes # comment\n"
    )
    url = DatabaseUrl.parse(load_settings(path, {"PASSWORD": secret}).database.url)
    assert (url.user, url.password, url.host, url.database) == ("sa", secret, "db.example", "shop")


@given(SECRETS)
def test_any_text_of_a_variable_is_one_scalar(secret: str) -> None:
    text, held = hold_out("app: ${X}")
    assert fill(text, held, lambda name: resolve(name, {"X": secret}, Path())) == f"app: {secret}"


@given(st.text(alphabet="${}:-abcX \n", max_size=30))
def test_what_is_held_out_can_be_put_back(text: str) -> None:
    marked, held = hold_out(text)
    assert put_back(marked, held) == text


def test_a_variable_that_is_the_whole_url_is_taken_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "database: ${CHOKAQ_DB:-sqlite:////var/lib/q.db}")
    assert load_settings(path, {}).database.url == "sqlite:////var/lib/q.db"
    whole = "mssql://u:p%40ss@h/db"
    assert load_settings(path, {"CHOKAQ_DB": whole}).database.url == whole


def test_host_and_port_come_as_they_are_and_a_sqlite_path_keeps_its_slashes(tmp_path: Path) -> None:
    path = write(tmp_path, "database: mssql://u:${P}@${HOST}/db")
    assert load_settings(path, {"P": "p@/", "HOST": "db:1434"}).database.url == "mssql://u:p%40%2F@db:1434/db"
    path = write(tmp_path, "database: sqlite:///${DIR}/q.db")
    url = load_settings(path, {"DIR": "/var/my data"}).database.url
    assert DatabaseUrl.parse(url).path == "/var/my data/q.db"


def test_a_number_or_a_flag_may_come_from_a_variable(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "production: ${PROD}\ndatabase: mssql://u:p@h/d\nqueues: {q: {max_workers: '${N}', max_jobs: ${J}, zombie_timeout: ${T}}}",
    )
    settings = load_settings(path, {"PROD": "true", "N": "7", "J": "null", "T": "20m"})
    queue = settings.queues["q"]
    assert (settings.production, queue.max_workers, queue.max_jobs, queue.zombie_timeout) == (True, 7, None, 1200)


def test_text_in_the_yaml_itself_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"queues\.q\.max_workers: must be a whole number from 1 to 10,000, got '7'"):
        load_settings(write(tmp_path, "queues: {q: {max_workers: '7'}}"), {})


def test_a_secret_comes_from_a_file_without_its_line_break(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p: #'\"\n")
    path = write(tmp_path, f"database: mssql://sa:${{file:{tmp_path / 'password'}}}@h/db")
    assert DatabaseUrl.parse(load_settings(path, {}).database.url).password == "p: #'\""
    path = write(tmp_path, "database: mssql://sa:${file:password}@h/db")
    assert DatabaseUrl.parse(load_settings(path, {}).database.url).password == "p: #'\""


def test_the_folder_of_a_secret_may_come_from_the_environment(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "password").write_text("p@ss\n")
    path = write(tmp_path, "database: mssql://sa:${file:$CREDENTIALS_DIRECTORY/password}@h/db")
    environ = {"CREDENTIALS_DIRECTORY": str(credentials)}
    assert DatabaseUrl.parse(load_settings(path, environ).database.url).password == "p@ss"


def test_only_the_beginning_of_a_path_is_a_variable(tmp_path: Path) -> None:
    (tmp_path / "a$HOME").write_text("one")
    (tmp_path / "$alone").write_text("two")
    for name, found in (("a$HOME", "one"), ("$alone", "two")):
        path = write(tmp_path, f"deck: {{title: '${{file:{name}}}'}}")
        assert load_settings(path, {"HOME": "/nowhere", "alone": "/nowhere"}).deck.title == found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "${file:$CREDENTIALS_DIRECTORY/password}",
            "CREDENTIALS_DIRECTORY is not set: set it to the folder of password",
        ),
        ("${NOPE}", "the environment variable NOPE is not set"),
        ("${file:/no/such/file}", "cannot read the file /no/such/file: No such file"),
        ("${file:}", "names no file"),
        ("${}", "is not a variable"),
        ("${1X}", "is not a variable"),
        ("'${OPEN'", "is not closed"),
    ],
)
def test_a_variable_without_a_value_is_an_error_at_its_path(tmp_path: Path, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, f"queues:\n  emails:\n    max_workers: {value}\n"), {})
    assert str(caught.value).startswith(f"{tmp_path}/chokaq.yaml: queues.emails.max_workers: ")
    assert message in str(caught.value)
    assert "(line 3)" in str(caught.value)


def test_a_variable_in_a_comment_needs_no_value(tmp_path: Path) -> None:
    load_settings(write(tmp_path, "# ${NOPE}\nlog_level: info # ${file:/no/such}\n"), {})


def test_two_dollars_stand_for_the_text_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"got '\$\{NAME\}'"):
        load_settings(write(tmp_path, "log_level: $${NAME}"), {"NAME": "info"})


def test_an_empty_variable_takes_the_default(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "log_level: ${L:-debug}"), {"L": ""}).log_level == "debug"


def test_a_variable_cannot_be_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a variable may stand in a value only"):
        load_settings(write(tmp_path, "queues: {${X}: {}}"), {"X": "emails"})


def test_a_refused_url_never_shows_its_password(tmp_path: Path) -> None:
    path = write(tmp_path, "database: oracle://sa:${PASSWORD}@h/db")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {"PASSWORD": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert "database.url" in str(caught.value)


def test_the_marks_themselves_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="private characters"):
        load(write(tmp_path, "app: '\ue000'"), {})
    with pytest.raises(VariableError):
        hold_out("\ue001")
