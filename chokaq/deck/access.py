"""Who may look and who may change: users, tokens, a trusted proxy's header, sessions.

A middleware (`Gate`) stands before everything The Deck serves, sockets included; pages and the API only ask who was let in.
"""

from starlette.requests import HTTPConnection

from chokaq.deck.users import Role, User

__all__ = ["Role", "User", "user_of"]

SCOPE = "chokaq.user"


def user_of(request: HTTPConnection) -> User:
    """Who sent this request: every request that reaches a page or the API has one."""
    user = request.scope[SCOPE]
    assert isinstance(user, User)
    return user
