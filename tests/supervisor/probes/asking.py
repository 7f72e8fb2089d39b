"""Asking a program under test, as a kubelet does."""

import http.client
import json
from contextlib import closing
from typing import Any

from tests.support.supervised import Program

TIMEOUT = 20.0


def port_of(program: Program, count: int = 1) -> int:
    """The port it has opened last, once it has opened that many."""
    return int(program.wait("probes_listening", count)[-1]["port"])


def ask(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Status and document; 0 and nothing when nobody answers."""
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException):
        return 0, {}


def status(port: int, path: str) -> int:
    """Of one answer."""
    return ask(port, path)[0]


def until(program: Program, path: str, code: int, timeout: float = 40.0) -> dict[str, Any]:
    """Ask until the path answers so; the document."""
    port, found = port_of(program), dict[str, Any]()

    def answered() -> bool:
        nonlocal found
        now, found = ask(port, path)
        return now == code

    program.until(answered, f"{code} from {path}", timeout)
    return found
