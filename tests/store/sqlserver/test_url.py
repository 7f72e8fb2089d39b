"""Database URLs: read, refused with a reason, printed without secrets."""

import pytest

from chokaq.store.errors import StoreMisconfigured
from chokaq.store.url import DatabaseUrl, redact


def test_a_full_server_url_is_taken_apart() -> None:
    url = DatabaseUrl.parse("mssql://sa:p%40ss%2Fw%25rd@db.example.com:1444/shop?encrypt=yes&TrustServerCertificate=no")
    assert (url.scheme, url.user, url.password, url.host, url.port, url.database) == (
        "mssql",
        "sa",
        "p@ss/w%rd",
        "db.example.com",
        1444,
        "shop",
    )
    assert url.options == {"encrypt": "yes", "trustservercertificate": "no"}


def test_ipv6_stands_in_brackets() -> None:
    url = DatabaseUrl.parse("mssql://u:p@[2001:db8::1]:1433/db")
    assert (url.host, url.port) == ("2001:db8::1", 1433)
    assert url.redacted == "mssql://u:***@[2001:db8::1]:1433/db"
    assert DatabaseUrl.parse("mssql://u:p@[::1]/db").port is None


def test_integrated_and_entra_logins_need_no_password() -> None:
    assert DatabaseUrl.parse("mssql://host/db?trusted_connection=yes").user is None
    url = DatabaseUrl.parse("mssql://client-id@host/db?authentication=ActiveDirectoryMsi")
    assert (url.user, url.password) == ("client-id", None)


def test_a_sqlite_url_keeps_relative_and_absolute_paths_apart() -> None:
    assert DatabaseUrl.parse("sqlite:///chokaq.db").path == "chokaq.db"
    assert DatabaseUrl.parse("sqlite:////var/lib/my%20jobs.db").path == "/var/lib/my jobs.db"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("postgres://u:s3cret@h/db", "`postgres` is not a store"),
        ("just text s3cret", "no known scheme"),
        ("mssql://u:s3cret@/db", "names no host"),
        ("mssql://u:s3cret@host", "names no database"),
        ("mssql://host/db", "names no login"),
        ("mssql://u:s3cret@host:port/db", "the port"),
        ("mssql://u:s3cret@host:99999/db", "the port"),
        ("mssql://u:s3cret@host:/db", "the port"),
        ("mssql://u:s3cret@::1/db", "brackets"),
        ("mssql://u:s3cret@[::1/db", "brackets"),
        ("mssql://u:s3cret@host:1433/db?instance=SQLEXPRESS", "either a port or `instance`"),
        ("mssql://u:s3cret@host/db?trusted_connection=yes", "takes no user"),
        ("mssql://u:s3cret@host/db?uid=x", "belongs before"),
        ("mssql://u:s3cret@host/db?a=1&A=2", "given twice"),
        ("mssql://u:s3cret@host/db?a;b=1", "percent-encode"),
        ("mssql://u:pa?s3cret@host/db", "percent-encode"),
        ("mssql://u:p@host/db?x=1&s3cret@y/z=1", "percent-encode"),
        ("sqlite://chokaq.db", "three slashes"),
        ("sqlite:///", "names no file"),
    ],
)
def test_a_bad_url_is_refused_with_its_reason_and_without_its_password(text: str, says: str) -> None:
    with pytest.raises(StoreMisconfigured) as caught:
        DatabaseUrl.parse(text)
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_redacted_hides_passwords_wherever_they_stand() -> None:
    text = "mssql://u:s3cret@host/db?encrypt=yes&clientsecret=s3cret"
    url = DatabaseUrl.parse(text)
    assert url.redacted == "mssql://u:***@host/db?encrypt=yes&clientsecret=***"
    assert redact(text) == url.redacted
    assert redact("s3cret") == "<unreadable database url>"
    assert url.secrets == ["s3cret", "s3cret"]


def test_a_password_with_a_raw_at_sign_still_finds_the_host() -> None:
    url = DatabaseUrl.parse("mssql://u:p@ss@host/db")
    assert (url.password, url.host) == ("p@ss", "host")
