"""The child's side of tests.support.processes: read what to do, say ready, wait for go, work, report one JSON line."""

import json
import sys
from collections.abc import Callable
from typing import Any

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store


def main(work: Callable[..., dict[str, Any]]) -> None:
    """Run `work(store, settings, index=…, **arguments)`; its dict becomes the report. An error goes to stderr as it is."""
    order = json.loads(sys.stdin.readline())
    settings = DatabaseSettings(**order["settings"])
    store: Store = open_store(settings)
    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        raise SystemExit("the test that started this program has ended")
    report = work(store, settings, index=order["index"], **order["arguments"])
    print(json.dumps(report), flush=True)
