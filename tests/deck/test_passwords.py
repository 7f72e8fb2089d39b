"""Passwords."""

from chokaq.deck.passwords import MAX_PASSWORD, hash_password, is_password


def test_a_hash_is_of_its_password_only() -> None:
    hashed = hash_password("secret")

    assert hashed.startswith("$argon2id$")
    assert is_password("secret", hashed)
    assert not is_password("Secret", hashed)
    assert not is_password("secret", None)
    assert not is_password("secret", "$argon2id$v=19$m=65536,t=3,p=4$SALT$HASH")
    assert not is_password("x" * (MAX_PASSWORD + 1), hashed)
