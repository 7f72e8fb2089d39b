"""What `deck:` may say, and what it may not."""

from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_settings
from chokaq.config.load import load, with_origins
from chokaq.config.show import redacted, shown_settings

HASH = "$argon2id$v=19$m=65536,t=3,p=4$SALT$HASH"
TOKEN = "t" * 32


def write(folder: Path, text: str) -> Path:
    """A configuration file."""
    file = folder / "chokaq.yaml"
    file.write_text(text)
    return file


def test_users_a_token_and_colours_are_read(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        f"deck: {{enabled: true, host: 0.0.0.0, port: 9000, token: {TOKEN}, lag_warning: 2s, lag_critical: 4s, "
        f"users: {{anna: {{password_hash: '{HASH}', role: operator}}, vera: {{password_hash: '{HASH}'}}}}}}",
    )

    deck = load_settings(file, {}).deck

    assert (deck.enabled, deck.host, deck.port, deck.lag_warning, deck.lag_critical) == (
        True,
        "0.0.0.0",
        9000,
        2.0,
        4.0,
    )
    assert {name: user.role for name, user in deck.users.items()} == {"anna": "operator", "vera": "viewer"}
    assert deck.token == TOKEN


@pytest.mark.parametrize(
    ("deck", "path", "message"),
    [
        ("{host: 0.0.0.0}", "deck.host", "nobody would have to say who they are"),
        ("{host: deck.example.com}", "deck.host", "nobody would have to say who they are"),
        ("{lag_warning: 10s, lag_critical: 10s}", "deck.lag_critical", "must be above lag_warning"),
        ("{token: short}", "deck.token", "characters or null, got a value not shown here"),
        ("{users: {anna: {role: operator}}}", "deck.users.anna", "needs a password_hash"),
        ("{users: {anna: {password_hash: secret}}}", "deck.users.anna.password_hash", "an argon2 hash"),
        (
            "{users: {anna: {password_hash: '$argon2id$a$b$c$d', role: admin}}}",
            "deck.users.anna.role",
            "viewer or operator",
        ),
        ("{proxy_peers: [everywhere]}", "deck.proxy_peers", "a list of addresses or networks"),
        ("{origins: ['deck.example.com']}", "deck.origins", "a list of origins"),
        ("{colour: red}", "deck.colour", "unknown option"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(tmp_path: Path, deck: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, f"deck: {deck}"), {})

    assert [(problem.path, message in problem.message) for problem in caught.value.problems] == [(path, True)]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_needs_no_authentication(tmp_path: Path, host: str) -> None:
    assert not load_settings(write(tmp_path, f"deck: {{host: '{host}'}}"), {}).deck.has_authentication


def test_secrets_are_shown_to_nobody(tmp_path: Path) -> None:
    file = write(tmp_path, f"deck: {{token: {TOKEN}, secret: {TOKEN}, users: {{anna: {{password_hash: '{HASH}'}}}}}}")
    loaded = load(file, {})

    rows = {row.path: row.value for row in shown_settings(loaded)}

    assert (rows["deck.token"], rows["deck.secret"], rows["deck.users.anna.password_hash"]) == ("***", "***", "***")
    assert TOKEN not in repr(redacted(loaded.settings))
    assert "SALT" not in repr(redacted(loaded.settings))


def test_settings_read_elsewhere_get_the_origins_of_their_file(tmp_path: Path) -> None:
    file = write(tmp_path, "deck:\n  title: Orders\n")
    settings = load_settings(file, {})

    assert with_origins(settings, {}).origins == {"deck.title": "chokaq.yaml:2"}
    write(tmp_path, "deck: {title: 7")
    assert with_origins(settings, {}) == (settings, {})
