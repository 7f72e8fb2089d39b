"""Passwords are kept as argon2 hashes and compared in the same time whether the user exists or not."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MAX_PASSWORD = 1_000
"""Characters: a longer one is refused before it costs anything."""

_hasher = PasswordHasher()


def hash_password(password: str) -> str:
    """What goes into `deck.users.….password_hash`."""
    return _hasher.hash(password)


def is_password(password: str, password_hash: str | None) -> bool:
    """Whether it is the one. Takes about 50 ms of CPU: call it in a thread. `password_hash` None: no such user."""
    if len(password) > MAX_PASSWORD:
        return False
    try:
        return (
            _hasher.verify(_nobodys() if password_hash is None else password_hash, password)
            and password_hash is not None
        )
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("nobody has this password")
