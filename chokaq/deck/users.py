"""Who is looking."""

import msgspec

from chokaq.operations.actor import By, Role, by

__all__ = ["Role", "User"]


class User(msgspec.Struct, frozen=True):
    """Somebody who was let in. A page keeps the one its request came with (`access.user_of(request)`)."""

    name: str
    """What the audit log shows as actor."""
    role: Role
    """`Role.VIEWER` or `Role.OPERATOR`."""
    until: float | None = None
    """When the session ends, in seconds since 1970; None: never (token, proxy header, loopback without authentication)."""
    session: str | None = None
    """Names the sign-in, so that it can be ended."""

    @property
    def may_change(self) -> bool:
        """Whether to show the controls that change something. The operations check it again."""
        return self.role is Role.OPERATOR

    def by(self, reason: str | None = None) -> By:
        """The actor of an operation. Raises OperationError for a reason out of bounds."""
        return by(self.name, reason, role=self.role)
