"""apply, check, version, script: the schema installs once, also from twenty processes at once (C31)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from chokaq.store.errors import SchemaMismatch
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from tests.support import mssql, stores
from tests.support.holder import Holder
from tests.support.jobs import new_jobs
from tests.support.lab import Lab
from tests.support.processes import run_programs


@pytest.fixture
def empty_place(store_kind: str, tmp_path: Path) -> Iterator[DatabaseSettings]:
    """A place where nothing is installed yet: a file that does not exist, or a schema name never used."""
    settings = stores.options(store_kind, tmp_path, "chokaq_cold")
    if store_kind == stores.SQLSERVER:
        mssql.create_database(settings.url)
    lab = stores.laboratory(settings)
    lab.drop_schema()
    yield settings
    lab.drop_schema()
    lab.close()


def test_what_was_applied_is_complete(store: Store) -> None:
    assert store.check_schema() == []
    assert store.schema_version() is not None


def test_a_second_apply_does_nothing(store: Store) -> None:
    version = store.schema_version()

    assert store.apply_schema() == []
    assert store.schema_version() == version


def test_an_empty_place_has_no_version_and_says_so(empty_place: DatabaseSettings) -> None:
    store = open_store(empty_place)

    assert store.schema_version() is None
    assert store.check_schema() != []
    applied = store.apply_schema()
    assert applied
    assert any("001" in name for name in applied)
    assert store.check_schema() == []


def test_a_session_in_a_place_without_schema_never_guesses(empty_place: DatabaseSettings, store_kind: str) -> None:
    """SQL Server: SchemaMismatch. An empty SQLite file may be installed into on the first run (design §9)."""
    store = open_store(empty_place)
    if store_kind == stores.SQLSERVER:
        with pytest.raises(SchemaMismatch, match="schema apply"):
            store.session()
        return
    session = store.session()
    assert session.enqueue_jobs(new_jobs(1))[0].created
    session.close()


def test_a_newer_schema_that_does_not_serve_the_program_is_refused_clearly(
    empty_place: DatabaseSettings, store_kind: str
) -> None:
    store = open_store(empty_place)
    store.apply_schema()
    become_newer(empty_place, store_kind, oldest=9_999)

    with pytest.raises(SchemaMismatch, match=r"version 9999, newer than this program knows .* from version 9999 on"):
        store.session()
    with pytest.raises(SchemaMismatch, match="install a newer chokaq"):
        store.apply_schema()
    assert store.schema_version() == 9999
    assert store.check_schema() != []


def test_a_session_that_is_open_sees_the_schema_move_on_beneath_it(
    empty_place: DatabaseSettings, store_kind: str
) -> None:
    store = open_store(empty_place)
    store.apply_schema()
    with contextlib.closing(store.session()) as session:
        become_newer(empty_place, store_kind, oldest=9_999)
        health = session.read_health(["emails"])
    assert (health.version, health.fits) == (9999, False)
    assert health.needed < 9999


def test_a_newer_schema_that_serves_the_program_is_left_as_it_is(
    empty_place: DatabaseSettings, store_kind: str
) -> None:
    """During a rolling deploy, and after a rollback: nothing is refused, and nothing is put back."""
    store = open_store(empty_place)
    store.apply_schema()
    become_newer(empty_place, store_kind, oldest=4)

    session = store.session()
    assert session.enqueue_jobs(new_jobs(1))[0].created
    session.close()
    assert store.apply_schema() == []
    assert store.schema_version() == 9999
    assert store.check_schema() == []


def become_newer(place: DatabaseSettings, kind: str, oldest: int) -> None:
    """What a later program would have left behind: version 9999, for programs from `oldest` on."""
    lab = stores.laboratory(place)
    if kind == stores.SQLITE:
        table = "SchemaMigrations" if oldest == 9_999 else "SchemaAdditions"
        lab.execute(f"INSERT INTO {{{table}}} VALUES (9999, '9999_future', 0)")
    else:
        lab.execute(
            "INSERT INTO {SchemaMigrations} (Version, Name, Sha256, AppliedAtUtc) "
            "VALUES (9999, '9999_future', REPLICATE('0', 64), SYSUTCDATETIME())"
        )
        lab.execute(f"DROP PROCEDURE {place.schema}.GetClock")
        lab.execute(
            f"CREATE PROCEDURE {place.schema}.GetClock AS BEGIN SET NOCOUNT ON; SELECT SYSUTCDATETIME() AS NowUtc, "
            f"4 AS Version, 9999 AS SchemaVersion, {oldest} AS OldestProgram, 1 AS LaterColumn; END"
        )
    lab.close()


@pytest.mark.parametrize(
    "damage", ["DROP INDEX {index}", "ALTER TABLE {JobsHot} ADD Extra int NULL", "DROP TABLE {JobNotes}"]
)
def test_check_names_what_differs(empty_place: DatabaseSettings, store_kind: str, damage: str) -> None:
    store = open_store(empty_place)
    store.apply_schema()
    lab = stores.laboratory(empty_place)
    index = "IX_JobsHot_Due" + (f" ON {empty_place.schema}.JobsHot" if store_kind == stores.SQLSERVER else "")
    lab.execute(damage.replace("{index}", index))
    lab.close()

    found = store.check_schema()

    assert found
    assert any("JobsHot" in line or "JobNotes" in line for line in found)
    assert all(line.strip().endswith(".") or " " in line for line in found), "one sentence each"


def test_the_script_says_everything_apply_would_run(store: Store) -> None:
    script = store.schema_script()

    for word in ("JobsHot", "JobsArchive", "JobsDLQ", "JobAttempts", "MetricBuckets", "UX_JobsHot_Key"):
        assert word in script


@pytest.mark.processes
@pytest.mark.timeout(360)
def test_twenty_cold_starts_install_the_schema_once(empty_place: DatabaseSettings) -> None:
    """C31: simultaneous starts deadlock elsewhere."""
    reports = run_programs("cold_start", 20, empty_place, timeout=330)

    assert sum(bool(report["applied"]) for report in reports) == 1
    assert all(report["created"] for report in reports)
    assert len({report["version"] for report in reports}) == 1
    store = open_store(empty_place)
    assert store.check_schema() == []
    lab = stores.laboratory(empty_place)
    assert lab.count("JobsHot") == 20
    versions = [row["Version"] for row in lab.rows("SchemaMigrations")]
    assert len(versions) == len(set(versions))
    lab.close()


def test_the_store_shows_its_place_without_secrets(store: Store, store_options: DatabaseSettings) -> None:
    from urllib.parse import urlsplit

    secret = urlsplit(store_options.url).password
    assert secret is None or (secret not in store.url and secret not in store.identity)
    assert open_store(store_options).identity == store.identity


def test_a_second_place_beside_the_first_works_and_does_not_mix(
    store_kind: str, session: Session, lab: Lab, tmp_path: Path
) -> None:
    """The schema name is configurable: the same procedures under `chokaq_two` (on SQLite: a second file)."""
    settings = stores.options(store_kind, tmp_path, stores.SECOND_SCHEMA)
    store = stores.prepare(settings)
    second = store.session()
    session.enqueue_jobs(new_jobs(3))
    second.enqueue_jobs(new_jobs(5))

    holder = Holder(second)
    held = holder.take(10)
    holder.succeed(held[:4])
    second.cancel_jobs([held[4].id], "ann")

    assert len(held) == 5
    assert lab.count("JobsHot") == 3
    assert [view.name for view in second.list_queues()] == ["mail"]
    assert second.list_queues()[0].succeeded_total == 4
    assert store.check_schema() == []
    assert store.identity != open_store(stores.options(store_kind, tmp_path)).identity
    second.close()
