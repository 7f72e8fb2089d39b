"""Opens connections: the connection string, a probe of the port, the settings every connection starts with."""

import math
import re
import socket
from typing import Any

from chokaq.store.errors import StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlserver.driver import find_driver, is_freetds, load_pyodbc
from chokaq.store.sqlserver.errors import translate
from chokaq.store.url import DatabaseUrl

DEFAULT_PORT = 1433
_WRITE_AT_ONCE = 1 << 30
_PLAIN = re.compile(r"[A-Za-z0-9_.,\\:/-]+\Z")
_OWN = frozenset({"instance", "driver", "trusted_connection"})
_SPELLING = {
    "encrypt": "Encrypt",
    "trustservercertificate": "TrustServerCertificate",
    "authentication": "Authentication",
    "app": "APP",
    "multisubnetfailover": "MultiSubnetFailover",
    "applicationintent": "ApplicationIntent",
}


def connection_string(url: DatabaseUrl, driver: str) -> str:
    """The ODBC connection string. Holds secrets: never print it."""
    words = {"Driver": "{" + driver + "}"}
    if is_freetds(driver):
        words |= {
            "Server": url.host,
            "Port": str(url.port or DEFAULT_PORT),
            "TDS_Version": "7.4",
            "ClientCharset": "UTF-8",
        }
        if "instance" in url.options:
            words["Server"] = f"{url.host}\\{url.options['instance']}"
            del words["Port"]
    elif "instance" in url.options:
        words["Server"] = f"{url.host}\\{url.options['instance']}"
    else:
        words["Server"] = f"{url.host},{url.port or DEFAULT_PORT}"
    words["Database"] = url.database
    if url.user is not None:
        words["UID"] = url.user
    if url.password is not None:
        words["PWD"] = url.password
    if url.options.get("trusted_connection", "no").lower() in {"yes", "true", "1"}:
        words["Trusted_Connection"] = "yes"
    for name, value in url.options.items():
        if name in _OWN:
            continue
        if is_freetds(driver) and name == "encrypt":
            words["Encryption"] = "off" if value.lower() in {"no", "false", "optional"} else "require"
            continue
        words[_SPELLING.get(name, name)] = value
    words.setdefault("APP", "chokaq")
    return ";".join(f"{name}={value if name == 'Driver' else _quoted(value)}" for name, value in words.items())


def connect(options: DatabaseSettings, url: DatabaseUrl, *, autocommit: bool = True) -> Any:
    """An open pyodbc connection. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch, never with a secret."""
    driver = url.options.get("driver") or find_driver(options.odbc_driver)
    pyodbc = load_pyodbc()
    if "instance" not in url.options and not _tries_all_at_once(url):
        probe(url, options.connect_timeout)
    try:
        connection = pyodbc.connect(
            connection_string(url, driver), autocommit=autocommit, timeout=max(1, math.ceil(options.connect_timeout))
        )
    except pyodbc.Error as error:
        raise translate(error, url.redacted, url.secrets) from None
    try:
        connection.timeout = math.ceil(options.command_timeout)
        connection.maxwrite = _WRITE_AT_ONCE
        connection.execute(f"SET LOCK_TIMEOUT {int(options.lock_timeout * 1000)}").close()
    except pyodbc.Error as error:
        connection.close()
        raise translate(error, url.redacted, url.secrets) from None
    return connection


def probe(url: DatabaseUrl, timeout: float) -> None:
    """Raises StoreUnavailable when nothing listens: a refused port would use up the driver's whole login timeout."""
    port = url.port or DEFAULT_PORT
    try:
        socket.create_connection((url.host, port), timeout=timeout).close()
    except OSError as error:
        raise StoreUnavailable(
            f"{url.redacted}: nothing answers at {url.host} port {port} ({error.strerror or error}): "
            "check host and port in database.url, and that the server runs"
        ) from None


def _tries_all_at_once(url: DatabaseUrl) -> bool:
    """A listener of several subnets: only one of its addresses answers, and the driver finds it sooner than one after the other."""
    return url.options.get("multisubnetfailover", "no").lower() in {"yes", "true", "1"}


def _quoted(value: str) -> str:
    """A value in braces when it holds anything a connection string could take apart."""
    return value if _PLAIN.match(value) else "{" + value.replace("}", "}}") + "}"
