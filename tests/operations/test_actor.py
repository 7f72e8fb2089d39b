"""Who does something is known, and fits the audit log."""

import getpass

import pytest

from chokaq.operations import OperationError, Role, by, default_actor


def test_the_default_actor_is_the_user_at_this_host() -> None:
    assert default_actor().startswith(f"{getpass.getuser()}@")
    assert by(default_actor()).actor == default_actor()


def test_blanks_are_cut_and_a_blank_reason_is_none() -> None:
    assert by("  anna ", "  ") == ("anna", None, Role.OPERATOR)
    assert by("anna", " because ") == ("anna", "because", Role.OPERATOR)


@pytest.mark.parametrize(
    ("actor", "reason", "message"),
    [
        ("", None, "the actor is empty"),
        (" \t", None, "the actor is empty"),
        ("x" * 101, None, "the actor is longer than 100 characters"),
        ("\U0001f600" * 51, None, "the actor is longer than 100 characters"),
        ("a\0b", None, "the actor holds control characters"),
        ("a", "x" * 1_001, "the reason is longer than 1,000 characters"),
        ("a", "x\0", "the reason holds control characters"),
        ("a", "\ud800", "the reason holds control characters"),
    ],
)
def test_what_the_audit_log_cannot_hold_is_refused(actor: str, reason: str | None, message: str) -> None:
    with pytest.raises(OperationError, match=message):
        by(actor, reason)
