"""The producer's side of one system, in that system's own environment: told what to do by lines of JSON on stdin.

VENV/bin/python -m bench.peers.drive MODULE
"""

import importlib
import json
import sys
import time
from importlib import metadata
from typing import Any

THOUSAND = 1_000


class Driver:
    """Answers one request after the other."""

    def __init__(self, module: Any) -> None:
        self._peer = module
        self._producer: Any = None

    def describe(self) -> dict[str, Any]:
        """Who this is."""
        peer = self._peer
        return {
            "version": _version(peer.DISTRIBUTION),
            "recovery": peer.RECOVERY,
            "setups": {
                name: {"commands": list(setup.commands), "jobs": setup.jobs} for name, setup in peer.SETUPS.items()
            },
        }

    def reset(self, setup: str) -> dict[str, Any]:
        """An empty system, and a producer for it."""
        self.close()
        self._peer.reset(setup)
        self._producer = self._peer.producer()
        return {}

    def fill(self, first: int, end: int) -> dict[str, Any]:
        """Enqueue jobs by the fastest way."""
        many, one = self._producer.many, self._producer.one
        began = time.monotonic()
        if many is None:
            for number in range(first, end):
                one(number)
        else:
            for start in range(first, end, THOUSAND):
                many(range(start, min(end, start + THOUSAND)))
        return {"seconds": time.monotonic() - began, "bulk": many is not None}

    def singles(self, first: int, end: int) -> dict[str, Any]:
        """Enqueue jobs one by one."""
        began = time.monotonic()
        for number in range(first, end):
            self._producer.one(number)
        return {"seconds": time.monotonic() - began}

    def burst(self, first: int, end: int, every: float) -> dict[str, Any]:
        """Enqueue jobs one by one at a steady pace; when each was asked for."""
        asked = {}
        due = time.monotonic()
        for number in range(first, end):
            asked[number] = time.monotonic()
            self._producer.one(number)
            due += every
            time.sleep(max(0.0, due - time.monotonic()))
        return {"asked": asked}

    def unfinished(self) -> dict[str, Any]:
        """Jobs that are not done yet, as the system itself says."""
        return {"count": self._peer.unfinished()}

    def close(self) -> dict[str, Any]:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
        return {}


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "from the work tree"


def main() -> None:
    """Serve until stdin ends."""
    # Whatever a library prints must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    driver = Driver(importlib.import_module(f"bench.peers.{sys.argv[1]}"))
    for line in sys.stdin:
        request = json.loads(line)
        result = getattr(driver, request.pop("do"))(**request)
        answers.write(json.dumps(result) + "\n")
        answers.flush()
    driver.close()


if __name__ == "__main__":
    main()
