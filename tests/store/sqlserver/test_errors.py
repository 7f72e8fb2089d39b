"""Which of the store's errors a driver's error becomes."""

import pytest

from chokaq.store.errors import (
    KeyContention,
    SchemaMismatch,
    StoreConflict,
    StoreError,
    StoreMisconfigured,
    StoreRefused,
    StoreUnavailable,
)
from chokaq.store.sqlserver.errors import breaks_connection, is_passing_race, number, translate

PREFIX = "[{state}] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]{text} ({number}) (SQLExecDirectW)"


def raised(number: int, text: str = "something", state: str = "42000") -> Exception:
    return Exception(state, PREFIX.format(state=state, text=text, number=number))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *(
            (code, StoreUnavailable)
            for code in (1205, 1222, -2, 4060, 40197, 40501, 40613, 10928, 10929, 49918, 49919, 49920)
        ),
        (2601, StoreConflict),
        (2627, StoreConflict),
        (50001, KeyContention),
        (50002, StoreRefused),
        (2812, SchemaMismatch),
        (208, SchemaMismatch),
        (8144, SchemaMismatch),
        (18456, StoreMisconfigured),
        (911, StoreMisconfigured),
        (229, StoreRefused),
        (2628, StoreRefused),
    ],
)
def test_a_number_decides(code: int, kind: type[StoreError]) -> None:
    assert number(raised(code)) == code
    assert type(translate(raised(code), "mssql://host/db")) is kind


@pytest.mark.parametrize("state", ["08S01", "08001", "HYT00", "HYT01"])
def test_a_lost_link_is_unavailable_and_breaks_the_connection(state: str) -> None:
    error = Exception(
        state,
        f"[{state}] [Microsoft][ODBC Driver 18 for SQL Server]TCP Provider: Error code 0x68 (104) (SQLExecDirectW)",
    )
    assert type(translate(error, "place")) is StoreUnavailable
    assert breaks_connection(error)


def test_a_connection_that_leads_to_a_secondary_is_given_up() -> None:
    """After a failover it may be the old primary that answers: readable, and read-only for ever."""
    assert breaks_connection(raised(3906, "Failed to update database because the database is read-only."))
    assert not breaks_connection(raised(9002))


@pytest.mark.parametrize("code", [596, 701, 1105, 1204, 3906, 8645, 9002, 99999])
def test_a_number_that_is_not_known_to_last_passes(code: int) -> None:
    assert type(translate(raised(code), "place")) is StoreUnavailable


@pytest.mark.parametrize("state", ["IMC01", "IMC06"])
def test_a_link_the_driver_could_not_mend_itself_is_replaced(state: str) -> None:
    text = "The connection is broken and recovery is not possible. (0) (SQLExecDirectW)"
    error = Exception(state, f"[{state}] [Microsoft][ODBC Driver 18 for SQL Server]{text}")
    assert type(translate(error, "place")) is StoreUnavailable
    assert breaks_connection(error)


def test_a_database_that_is_recovering_is_no_refused_login() -> None:
    text = (
        "[28000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Login failed for user 'u'. (18456) (SQLDriverConnect); "
        "[28000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Cannot open database requested by the login. (4060) "
        "(SQLDriverConnect)"
    )
    assert type(translate(Exception("28000", text), "place")) is StoreUnavailable


def test_a_link_lost_under_encryption_is_no_setting() -> None:
    text = "[08S01] [Microsoft][ODBC Driver 18 for SQL Server]SSL Provider: Connection reset by peer (104) (SQLExecDirectW)"
    assert type(translate(Exception("08S01", text), "place")) is StoreUnavailable


def test_a_value_the_driver_cannot_send_is_refused() -> None:
    assert (
        type(translate(Exception("22001", "[22001] string data, right truncation (0) (SQLExecDirectW)"), "place"))
        is StoreRefused
    )


def test_a_deadlock_leaves_the_connection_and_passes() -> None:
    error = raised(1205, "deadlocked on lock resources", "40001")
    assert is_passing_race(error)
    assert not breaks_connection(error)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("canceling statement due to lock timeout", StoreUnavailable),
        ("procedure getclock() does not exist", SchemaMismatch),
        ('relation "chokaq_jobshot" does not exist', SchemaMismatch),
        ("column j.x does not exist", StoreRefused),
        ("value too long for type character varying(10)", StoreRefused),
        ("permission denied for procedure x", StoreRefused),
    ],
)
def test_an_engine_with_one_number_for_all_is_read_by_its_text(text: str, kind: type[StoreError]) -> None:
    assert type(translate(raised(33557097, text), "place")) is kind


@pytest.mark.parametrize(
    "text",
    [
        "pfree called with invalid pointer 0x55cb94b11a38 (header 0x0018080200020000)",
        "compressed pglz data is corrupt",
        "relation 1310669 deleted while still in use",
        "could not find pg_class tuple for index 1312615",
    ],
)
def test_a_session_with_damaged_memory_is_replaced_and_refuses_nothing(text: str) -> None:
    """Seen on Babelfish: jobs that had succeeded went to the DLQ as refused by the store."""
    error = raised(33557097, text)
    assert type(translate(error, "place")) is StoreUnavailable
    assert breaks_connection(error)
    assert not breaks_connection(raised(50001, text))


def test_messages_name_the_place_and_the_way_out_but_no_secret() -> None:
    error = translate(raised(18456, "Login failed for 'u' with s3cret", "28000"), "mssql://u:***@host/db", ["s3cret"])
    assert "mssql://u:***@host/db" in str(error)
    assert "database.url" in str(error)
    assert "s3cret" not in str(error)
    assert "[Microsoft]" not in str(error)


def test_an_untrusted_certificate_is_a_setting() -> None:
    text = "SSL Provider: [error:0A000086:SSL routines::certificate verify failed] (-1) (SQLDriverConnect)"
    error = Exception("08001", f"[08001] [Microsoft][ODBC Driver 18 for SQL Server]{text}")
    assert type(translate(error, "place")) is StoreMisconfigured
    assert "trustservercertificate" in str(translate(error, "place"))


def test_a_driver_that_cannot_be_loaded_is_a_setting() -> None:
    error = Exception(
        "01000", "[01000] [unixODBC][Driver Manager]Can't open lib '/x.so' : file not found (0) (SQLDriverConnect)"
    )
    assert type(translate(error, "place")) is StoreMisconfigured
