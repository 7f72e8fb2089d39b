"""What a release left behind stays: its schema files to the byte, and its procedures as its programs call them."""

import msgspec
import pytest

from chokaq.store import sqlfiles, versions
from chokaq.store.sqlite import schema as embedded
from chokaq.store.sqlserver import scripts
from chokaq.store.sqlserver.results import RESULTS
from tests.support.processes import ROOT
from tests.upgrade.releases import Release, is_here, numbered, releases, shapes, tree
from tests.upgrade.shapes import Parameter, Shape, shape

RELEASES = releases()
GROWN = {"GetClock": "0.1.0 reads its second column by number"}
"""Results that may grow although a release takes rows apart by their exact width, and why that release does not mind."""

ASKED = {"ReadChanges": [["SessionId", "RemainingMs"]]}
"""Results that only come when a parameter asks for them that releases do not know."""

each = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)


@each
def test_the_schema_files_of_a_release_are_frozen(release: Release) -> None:
    now = numbered(ROOT)
    changed = [name for name, digest in release.schema.items() if now.get(name) != digest]
    assert changed == [], (
        f"{release.version} was released with these files, and databases hold what they made: write a new numbered file instead"
    )


@each
def test_no_file_is_slipped_in_between_those_of_a_release(release: Release) -> None:
    older = {name for name in numbered(ROOT) if int(name.rpartition("/")[2][:3]) <= release.schema_version}
    assert older == set(release.schema), f"{release.version} never applied these: number them from the next version on"


@each
def test_the_programs_of_a_release_can_call_every_procedure(release: Release) -> None:
    assert complaints(release, shapes(ROOT)) == []


@each
def test_what_was_recorded_is_what_was_released(release: Release) -> None:
    if not is_here(release):
        pytest.skip(f"the history does not hold {release.commit}")
    folder = tree(release.commit)
    assert numbered(folder) == release.schema
    assert shapes(folder) == release.procedures


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parameters": []}, "StartJobs no longer takes @WorkerId"),
        ({"parameters": [Parameter("WorkerId", "int"), Parameter("Jobs", "varchar(max)")]}, "StartJobs takes @WorkerId as int"),
        (
            {"parameters": [*RELEASES[0].procedures["StartJobs"].parameters, Parameter("Slot", "int")]},
            "StartJobs demands @Slot, which 0.1.0 does not give",
        ),
        ({"results": [["JobId", "Lease", "Answer"]]}, "StartJobs answers ['JobId', 'Lease', 'Answer'], which 0.1.0 cannot read"),
        ({"results": [["JobId"]]}, "StartJobs answers ['JobId'], which 0.1.0 cannot read"),
        ({"results": []}, "StartJobs no longer answers ['JobId', 'Lease']"),
    ],
)  # fmt: skip
def test_a_change_that_old_programs_would_stumble_over_is_told(change: dict[str, object], complaint: str) -> None:
    now = RELEASES[0].procedures | {"StartJobs": msgspec.structs.replace(RELEASES[0].procedures["StartJobs"], **change)}
    assert any(complaint in found for found in complaints(RELEASES[0], now)), complaints(RELEASES[0], now)


def test_an_optional_parameter_and_for_later_releases_a_column_at_the_end_are_no_change() -> None:
    first = RELEASES[0]
    started = first.procedures["StartJobs"]
    now = first.procedures | {
        "StartJobs": Shape([*started.parameters, Parameter("Slot", "int", "0")], [[*started.results[0], "Answer"]]),
        "Brand": Shape([], []),
    }
    assert complaints(msgspec.structs.replace(first, exact_rows=False), now) == []
    del now["StartJobs"]
    assert complaints(first, now) == ["StartJobs is gone"]


def complaints(release: Release, now: dict[str, Shape]) -> list[str]:
    """What keeps the programs of a release from calling these procedures, one sentence each."""
    found = []
    for name, old in release.procedures.items():
        if name not in now:
            found.append(f"{name} is gone")
            continue
        found += [f"{name} {fault}" for fault in _parameters(old, now[name], release)]
        found += [f"{name} {fault}" for fault in _results(old, now[name], release, name)]
    return found


def _parameters(old: Shape, new: Shape, release: Release) -> list[str]:
    given = {parameter.name: parameter for parameter in old.parameters}
    taken = {parameter.name: parameter for parameter in new.parameters}
    return [
        *(f"no longer takes @{name}" for name in given if name not in taken),
        *(
            f"takes @{name} as {taken[name].type} instead of {given[name].type}"
            for name in given
            if name in taken and taken[name].type != given[name].type
        ),
        *(
            f"demands @{parameter.name}, which {release.version} does not give: give it a default that means what there was before"
            for parameter in new.parameters
            if parameter.default is None and (parameter.name not in given or given[parameter.name].default is not None)
        ),
    ]


def _results(old: Shape, new: Shape, release: Release, name: str) -> list[str]:
    exact = release.exact_rows and name not in GROWN

    def reads(known: list[str], answered: list[str]) -> bool:
        return answered == known if exact else answered[: len(known)] == known

    return [
        *(
            f"answers {answered}, which {release.version} cannot read"
            for answered in new.results
            if answered not in ASKED.get(name, []) and not any(reads(known, answered) for known in old.results)
        ),
        *(
            f"no longer answers {known}"
            for known in old.results
            if not any(reads(known, answered) for answered in new.results)
        ),
    ]


# ── the present program ───────────────────────────────────────────────────────────────────────────────────────────────
def test_getclock_tells_the_version_and_the_oldest_program_of_the_files_at_hand() -> None:
    text = sqlfiles.read("procedures", "GetClock")
    assert f"@SchemaVersion int = {scripts.latest()}, @OldestProgram int = {scripts.oldest()};" in text


def test_both_stores_have_the_same_version_and_serve_the_same_programs() -> None:
    assert embedded.latest() == scripts.latest()
    for script in scripts.migrations():
        twin = embedded.migrations().get(script.version)
        if twin is None:
            assert "view" in script.name, f"{script.name} has no embedded twin"
            continue
        served = versions.serves(script.text, script.version)
        assert versions.serves(sqlfiles.read("embedded", twin), script.version) == served, script.name


@each
def test_a_released_program_is_served(release: Release) -> None:
    """A rolling deploy from every released version on. Dropping one is a decision: say so in docs/upgrading.md."""
    assert scripts.oldest() <= release.schema_version


@pytest.mark.parametrize("name", sqlfiles.names("procedures"))
def test_the_widths_of_results_are_those_of_the_procedures(name: str) -> None:
    """Wider ones would be cut although this program knows them."""
    wide = [width for columns in shape(sqlfiles.read("procedures", name)).results for width in _widths(columns)]
    known = RESULTS[name]
    if name.startswith("Enqueue"):
        # The first is the error row (number, text), which may stand in the place of the answers.
        wide = wide[1:]
    assert list(known) == wide


def _widths(columns: list[str]) -> list[int]:
    """Of one result, or of those of a procedure that is called inside."""
    called = columns[0].removeprefix("EXEC ") if columns[0].startswith("EXEC ") else None
    if called is None:
        return [len(columns)]
    return [len(found) for found in shape(sqlfiles.read("procedures", called)).results]
