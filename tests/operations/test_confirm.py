"""What has to be confirmed, and by which words: the rule of the CLI and The Deck (chokaq-dotnet §6, G17)."""

import pytest

from chokaq.operations import Action, Confirmation, OperationError, confirm_jobs, confirm_queue


@pytest.mark.parametrize(
    ("action", "count", "by_filter", "phrase"),
    [
        (Action.DROP, 1, False, "drop 1"),
        (Action.PURGE, 1, False, "purge 1"),
        (Action.PURGE, 7, True, "purge 7"),
        (Action.RESURRECT, 24, False, None),
        (Action.RESURRECT, 25, False, "resurrect 25"),
        (Action.RESURRECT, 1, True, "resurrect 1"),
        (Action.CANCEL, 24, False, None),
        (Action.CANCEL, 25, False, "cancel 25"),
        (Action.PURGE, 0, True, None),
    ],
)
def test_what_destroys_and_what_touches_many_is_confirmed(
    action: Action, count: int, by_filter: bool, phrase: str | None
) -> None:
    found = confirm_jobs(action, count, by_filter=by_filter)
    assert (None if found is None else found.phrase) == phrase


def test_a_queue_is_confirmed_by_its_name() -> None:
    assert confirm_queue(Action.DEACTIVATE, "emails").phrase == "deactivate emails"


@pytest.mark.parametrize("typed", ["purge 12", "PURGE 12\n", "  Purge   12 "])
def test_the_phrase_counts_whatever_its_case_and_blanks(typed: str) -> None:
    Confirmation("purge 12").check(typed)


@pytest.mark.parametrize("typed", ["", "\n", "y", "yes", "purge", "purge 1", "purge 120", "12", "drop 12"])
def test_nothing_else_confirms(typed: str) -> None:
    with pytest.raises(OperationError, match="not confirmed: 'purge 12' was to be typed; nothing was changed"):
        Confirmation("purge 12").check(typed)


def test_a_plain_yes_stands_for_the_phrase_but_not_in_production() -> None:
    Confirmation("purge 12").waive()
    with pytest.raises(OperationError, match="'purge 12' has to be typed, --yes does not stand for it"):
        Confirmation("purge 12", production=True).waive()


def test_in_production_nobody_is_told_to_say_yes() -> None:
    with pytest.raises(OperationError, match="say --yes"):
        Confirmation("purge 12").refuse_unattended()
    with pytest.raises(OperationError, match="run it on a terminal; nothing was changed"):
        Confirmation("purge 12", production=True).refuse_unattended()


def test_production_is_carried_into_every_confirmation() -> None:
    for found in (
        confirm_jobs(Action.DROP, 1, production=True),
        confirm_queue(Action.DEACTIVATE, "q", production=True),
    ):
        assert found is not None
        assert found.production
