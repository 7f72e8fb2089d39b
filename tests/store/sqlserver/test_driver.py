"""Which ODBC driver is taken, and what is said when there is none."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from chokaq.store.errors import StoreMisconfigured, StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver import connecting, driver
from chokaq.store.sqlserver.connecting import connection_string, probe
from chokaq.store.url import DatabaseUrl


class FakeOdbc:
    """Only what discovery asks of pyodbc."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def drivers(self) -> tuple[str, ...]:
        return self.names


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Any:
    def register(*names: str, packaged: Path | None = None) -> None:
        monkeypatch.setattr(driver, "load_pyodbc", lambda: FakeOdbc(*names))
        monkeypatch.setattr(driver, "packaged_driver", lambda: packaged)

    return register


def test_a_registered_driver_comes_before_the_packaged_one_and_that_before_freetds(
    registered: Any, tmp_path: Path
) -> None:
    registered("FreeTDS", driver.REGISTERED, packaged=tmp_path / "lib.so")
    assert driver.find_driver(None) == driver.REGISTERED
    registered("FreeTDS", packaged=tmp_path / "lib.so")
    assert driver.find_driver(None) == str(tmp_path / "lib.so")
    registered("FreeTDS")
    assert driver.find_driver(None) == "FreeTDS"


def test_the_setting_wins_and_must_exist(registered: Any, tmp_path: Path) -> None:
    registered(driver.REGISTERED, "Mine")
    assert driver.find_driver("Mine") == "Mine"
    with pytest.raises(StoreMisconfigured, match=r"database\.odbc_driver.*not registered"):
        driver.find_driver("Other")
    file = tmp_path / "libmine.so"
    with pytest.raises(StoreMisconfigured, match=r"there is no file"):
        driver.find_driver(str(file))
    file.touch()
    assert driver.find_driver(str(file)) == str(file)


def test_without_any_driver_the_message_names_the_packages(registered: Any) -> None:
    registered("SQLite3")
    with pytest.raises(StoreMisconfigured, match=r"SQLite3.*msodbcsql18.*chokaq\[odbc\]"):
        driver.find_driver(None)


def test_without_unixodbc_the_message_names_the_system_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **more: Any) -> Any:
        if name == "pyodbc":
            raise ImportError("libodbc.so.2: cannot open shared object file")
        return real(name, *args, **more)

    monkeypatch.delitem(sys.modules, "pyodbc", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    driver.load_pyodbc.cache_clear()
    try:
        with pytest.raises(StoreMisconfigured, match=r"libodbc2.*sqlite"):
            driver.load_pyodbc()
    finally:
        driver.load_pyodbc.cache_clear()


def test_the_connection_string_quotes_what_could_take_it_apart() -> None:
    url = DatabaseUrl.parse("mssql://u:p;Server%3Dx%7D%7B@[::1]:1444/my%20db?encrypt=yes&applicationintent=ReadOnly")
    text = connection_string(url, driver.REGISTERED)
    assert text == (
        "Driver={ODBC Driver 18 for SQL Server};Server=::1,1444;Database={my db};UID=u;PWD={p;Server=x}}{};"
        "Encrypt=yes;ApplicationIntent=ReadOnly;APP=chokaq"
    )


def test_integrated_logins_and_instances_are_spelled_for_the_driver() -> None:
    url = DatabaseUrl.parse("mssql://host/db?trusted_connection=yes&instance=SQLEXPRESS")
    assert "Server=host\\SQLEXPRESS;Database=db;Trusted_Connection=yes" in connection_string(url, driver.REGISTERED)


def test_freetds_gets_its_own_words() -> None:
    text = connection_string(DatabaseUrl.parse("mssql://u:p@host/db?encrypt=no"), "FreeTDS")
    assert "Port=1433" in text
    assert "Encryption=off" in text
    assert "Encrypt=" not in text


def test_a_port_where_nothing_listens_is_told_at_once_and_without_the_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"nothing answers at 127\.0\.0\.1 port 1 ") as caught:
        probe(DatabaseUrl.parse("mssql://u:s3cret@127.0.0.1:1/db"), 5)
    assert "s3cret" not in str(caught.value)


class NotConnecting:
    """A driver that reaches nobody."""

    Error = OSError

    @staticmethod
    def connect(*_: Any, **__: Any) -> None:
        raise OSError("08001", "the driver's turn")


def test_the_addresses_of_a_listener_are_left_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a listener in several subnets one address answers; asked one after the other, the silent ones cost a timeout each."""
    probed: list[str] = []
    monkeypatch.setattr(connecting, "probe", lambda url, timeout: probed.append(url.host))
    monkeypatch.setattr(connecting, "load_pyodbc", lambda: NotConnecting)
    monkeypatch.setattr(connecting, "find_driver", lambda setting: "driver")
    for options, times in (("", 1), ("?multisubnetfailover=no", 2), ("?multisubnetfailover=Yes", 2)):
        url = f"mssql://u:p@listener/db{options}"
        with pytest.raises(StoreUnavailable, match="the driver's turn"):
            connecting.connect(DatabaseSettings(url=url), DatabaseUrl.parse(url))
        assert len(probed) == times
