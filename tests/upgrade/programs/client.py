"""An application that enqueues through the public interface, batch after batch, until its stdin ends; and never takes a no.

`client.py SEED`. One JSON line per answer on stdout: what was offered, and what the store said. Runs with the program of any
release: it uses nothing but what an application uses. An error ends it with a traceback.
"""

import json
import random
import select
import sys
from typing import Any

from chaosapp import app

from chokaq import Enqueue

BATCH = 12
PAUSE = 0.05
KINDS = {"quick": 60, "long": 14, "thread": 5, "flaky": 12, "snooze": 6, "fatal": 3}


def facts(kind: str, chance: random.Random) -> dict[str, Any]:
    """The payload of a job."""
    if kind in ("long", "thread"):
        return {"seconds": round(chance.uniform(0.01, 0.3), 3)}
    if kind == "flaky":
        return {"fails": chance.randint(1, 2)}
    return {"times": 1} if kind == "snooze" else {}


def offer(chance: random.Random, number: int) -> dict[str, Any]:
    """One job, as it is written down."""
    kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
    keyed = kind == "quick" and chance.random() < 0.25
    return {
        "kind": kind,
        "payload": facts(kind, chance),
        "queue": "side" if chance.random() < 0.2 else "main",
        "delay_ms": chance.randint(50, 1_500) if chance.random() < 0.15 else 0,
        "priority": chance.choice([0, 10, 50]),
        # Now and then a key that a job before it has taken.
        "key": f"key-{sys.argv[1]}-{number - chance.randint(0, 1)}" if keyed else None,
        "scope": chance.choice(["active", "retained"]) if keyed else None,
    }


def item(offered: dict[str, Any]) -> Enqueue:
    """The same as the library takes it."""
    return Enqueue(
        f"chaos.{offered['kind']}",
        offered["payload"],
        queue=offered["queue"],
        priority=offered["priority"],
        delay=offered["delay_ms"] / 1_000 or None,
        idempotency_key=offered["key"],
        scope=offered["scope"],
    )


def main() -> None:
    """Enqueue, look, and sometimes cancel."""
    chance, number, known = random.Random(int(sys.argv[1])), 0, []
    with app:
        while not select.select([sys.stdin], [], [], PAUSE)[0]:
            batch = [offer(chance, number := number + 1) for _ in range(BATCH)]
            answers = app.enqueue_many_sync([item(offered) for offered in batch])
            lines = [
                {**offered, "id": answer.id, "created": answer.created}
                for offered, answer in zip(batch, answers, strict=True)
            ]
            created = [answer.id for answer in answers if answer.created]
            known += created
            if chance.random() < 0.3 and created:
                target = chance.choice(created)
                lines.append({"cancel": target, "answer": app.cancel_sync(target, reason="to see what happens").result})
            looked = chance.choice(known)
            if app.get_sync(looked) is None:
                raise AssertionError(f"{looked} was accepted and is gone")
            for line in lines:
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
