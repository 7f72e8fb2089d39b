"""A SQL Server that is not there: one clear message, without the password."""

import socket

from .conftest import Cli


def test_an_unreachable_database_is_named_without_its_password(cli: Cli) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        ran = cli(
            "status",
            "--database",
            f"mssql://sa:hunter2@127.0.0.1:{port}/d?encrypt=no&logintimeout=1",
            "--json",
            code=None,
        )
    assert ran.code in {3, 4}, "3 where no ODBC driver is installed"
    assert "hunter2" not in ran.out + ran.err
    assert f"database.url is mssql://sa:***@127.0.0.1:{port}/d" in ran.err
    assert ran.json["error"]["kind"] in {"configuration", "unreachable"}
