"""Database URLs: what a user writes under `database:` taken apart, checked, and printed without its secrets."""

import re
from urllib.parse import parse_qsl, quote, unquote

import msgspec

from chokaq.store.errors import StoreMisconfigured

SQLITE = "sqlite"
MSSQL = "mssql"

_SCHEMES = {"sqlite": SQLITE, "mssql": MSSQL, "mssql+pyodbc": MSSQL, "sqlserver": MSSQL}
_SECRET_OPTIONS = frozenset({"pwd", "password", "clientsecret", "accesstoken", "keystoresecret"})
_OWN_OPTIONS = frozenset({"server", "address", "addr", "database", "uid", "user"})
_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*\Z")
_HINT = "write `sqlite:///path` or `mssql://user:password@host[:port]/database?encrypt=yes`"
_HIDDEN = "***"


class DatabaseUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A database URL, taken apart. Build it with `parse`; print only `redacted`."""

    scheme: str
    """`sqlite` or `mssql`."""
    path: str = ""
    """SQLite only: the file, relative as written."""
    host: str = ""
    port: int | None = None
    """SQL Server only; None: 1433, or found through the named instance."""
    user: str | None = None
    password: str | None = None
    database: str = ""
    options: dict[str, str] = {}
    """What stands after the `?`, in the order written, names in lower case. `instance` names a SQL Server instance;
    every other option is an ODBC keyword."""

    @classmethod
    def parse(cls, text: str) -> "DatabaseUrl":
        """Take `text` apart. Raises StoreMisconfigured with what is wrong and never with the password."""
        head, separator, rest = text.strip().partition("://")
        scheme = _SCHEMES.get(head.lower())
        if not separator or scheme is None:
            shown = f"`{head}`" if separator and re.fullmatch(r"[A-Za-z0-9+.-]{1,40}", head) else "no known scheme"
            raise StoreMisconfigured(f"database.url: {shown} is not a store: {_HINT}")
        if "\x00" in text or "\n" in text:
            raise StoreMisconfigured(f"database.url: contains a control character: {_HINT}")
        body, _, query = rest.partition("?")
        options = _options(query)
        if scheme == SQLITE:
            return cls(scheme=scheme, path=_sqlite_path(body), options=options)
        return _server(body, options)

    @property
    def redacted(self) -> str:
        """The URL with every secret replaced by `***`."""
        query = "&".join(
            f"{quote(name)}={_HIDDEN if name in _SECRET_OPTIONS else quote(value, safe='/:.')}"
            for name, value in self.options.items()
        )
        tail = f"?{query}" if query else ""
        if self.scheme == SQLITE:
            return f"sqlite:///{self.path}{tail}"
        login = ""
        if self.user is not None:
            login = quote(self.user, safe="") + (f":{_HIDDEN}" if self.password is not None else "") + "@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port is not None else ""
        return f"mssql://{login}{host}{port}/{quote(self.database, safe='')}{tail}"

    @property
    def secrets(self) -> list[str]:
        """Every secret the URL holds: what a driver's message must be cleaned of."""
        values = [value for name, value in self.options.items() if name in _SECRET_OPTIONS]
        return [value for value in (self.password, *values) if value]


def redact(text: str) -> str:
    """`text` without its secrets when it is a URL; otherwise a placeholder, since nothing is known about it."""
    try:
        return DatabaseUrl.parse(text).redacted
    except StoreMisconfigured:
        return "<unreadable database url>"


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        key = name.lower()
        if not _OPTION_NAME.match(key):
            # Not shown: it may be the rest of a password with a raw question mark.
            raise StoreMisconfigured(
                "database.url: what stands after the `?` must be `option=value&…` with plain option names; "
                "percent-encode special characters in the password"
            )
        if key in _OWN_OPTIONS:
            raise StoreMisconfigured(f"database.url: option `{key}` belongs before the `?`: {_HINT}")
        if key in options:
            raise StoreMisconfigured(f"database.url: option `{key}` is given twice")
        options[key] = value
    return options


def _sqlite_path(body: str) -> str:
    """`sqlite:///a.db` is the relative file a.db, `sqlite:////var/a.db` the absolute one."""
    if not body.startswith("/"):
        raise StoreMisconfigured("database.url: a SQLite file is written with three slashes: `sqlite:///chokaq.db`")
    path = unquote(body[1:])
    if not path:
        raise StoreMisconfigured("database.url: names no file: write `sqlite:///chokaq.db`")
    return path


def _server(body: str, options: dict[str, str]) -> DatabaseUrl:
    # The last @ divides, so that a password typed with a raw @ still leaves the host readable.
    login, at, place = body.rpartition("@")
    address, _, database = place.partition("/")
    user, colon, password = login.partition(":")
    host, port = _address(address)
    database = unquote(database.rstrip("/"))
    if not host:
        raise StoreMisconfigured(f"database.url: names no host: {_HINT}")
    if not database:
        raise StoreMisconfigured(f"database.url: names no database after the host: {_HINT}")
    if port is not None and "instance" in options:
        raise StoreMisconfigured("database.url: give either a port or `instance`, not both")
    integrated = options.get("trusted_connection", "no").lower() in {"yes", "true", "1"}
    if integrated and at:
        raise StoreMisconfigured("database.url: trusted_connection=yes takes no user: drop `user:password@`")
    if not (at and user) and not integrated and "authentication" not in options and "accesstoken" not in options:
        raise StoreMisconfigured(
            "database.url: names no login: write `user:password@` before the host, or `?trusted_connection=yes`, "
            "or `?authentication=ActiveDirectoryMsi`"
        )
    return DatabaseUrl(
        scheme=MSSQL,
        host=host,
        port=port,
        user=unquote(user) if at and user else None,
        password=unquote(password) if colon else None,
        database=database,
        options=options,
    )


def _address(text: str) -> tuple[str, int | None]:
    """Host and port; an IPv6 address stands in brackets."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise StoreMisconfigured("database.url: an IPv6 address is written in brackets: `mssql://…@[::1]:1433/db`")
        port = rest[1:]
    else:
        host, colon, port = text.partition(":")
        if ":" in port:
            raise StoreMisconfigured("database.url: an IPv6 address is written in brackets: `mssql://…@[::1]:1433/db`")
        if colon and not port:
            raise StoreMisconfigured("database.url: the port after the host is empty")
    if not port:
        return unquote(host), None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise StoreMisconfigured("database.url: the port after the host must be a number from 1 to 65535")
    return unquote(host), int(port)
