"""A clock of its own for a replica: libfaketime, told through a file, so that it can jump while the replica runs."""

import os
from pathlib import Path

_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
)
LIBRARY: str | None = next((place for place in _PLACES if Path(place).exists()), None)


class FakeClock:
    """The host's clock as one replica sees it. Monotonic time stays true, as it does when a real clock is set."""

    def __init__(self, folder: Path) -> None:
        """Right at first."""
        self.file = folder / "clock"
        self.set(0)

    def set(self, seconds: int) -> None:
        """Let it be so many seconds ahead (behind when negative), from one instant to the next."""
        fresh = self.file.with_name(".fresh-clock")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.replace(self.file)

    @property
    def environ(self) -> dict[str, str]:
        """What the replica is started with."""
        assert LIBRARY is not None
        return {
            "LD_PRELOAD": os.pathsep.join([LIBRARY]),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
