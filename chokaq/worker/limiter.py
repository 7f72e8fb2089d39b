"""How many handlers may run at once; resized live, never by stopping one."""


class Limiter:
    """A counter with a ceiling, for the event loop's thread."""

    __slots__ = ("active", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = 0
        """Slots taken: jobs being started or run."""

    @property
    def has_room(self) -> bool:
        """True when a slot is free; False while more run than a lowered limit allows."""
        return self.active < self.limit

    def acquire(self) -> bool:
        """Take a slot; False when none is free."""
        if self.active >= self.limit:
            return False
        self.active += 1
        return True

    def release(self) -> None:
        """Give a slot back. Raises RuntimeError when none is taken."""
        if self.active == 0:
            raise RuntimeError("a slot was given back that nobody had taken")
        self.active -= 1

    def resize(self, limit: int) -> None:
        """Set another ceiling. What runs goes on; a lowered limit admits nobody until enough have ended."""
        if limit < 0:
            raise ValueError(f"a limit cannot be negative: {limit}")
        self.limit = limit
