"""What a page can listen to: names of things that change."""

import hashlib

import msgspec

from chokaq.lifecycle.states import Pillar

OVERVIEW = "overview"
"""Any outcome, any operator's action; every 5 s while nothing happens, since lag grows by itself."""
QUEUES = "queues"
"""Leases, outcomes, new jobs, overrides; every 5 s while nothing happens."""
WORKERS = "workers"
"""Workers that came, went or beat; every 5 s while nothing happens, since silence grows by itself."""
CIRCUITS = "circuits"
"""A circuit that changed, an order."""
AUDIT = "audit"
"""An operator's action."""

NOTHING = "nothing"
"""That the database goes away or comes back, and nothing else."""


def job_list(pillar: Pillar | None, queue: str | None, where: object = None) -> str:
    """A list of jobs under a filter: `list:<pillar>:<queue>:<fingerprint>`; None: any.

    `where`: the rest of the filter (anything JSON can hold); the same filter is the same topic, for whoever looks.
    """
    told = msgspec.json.encode([queue, where], order="deterministic")
    mark = hashlib.blake2b(told, digest_size=8).hexdigest()
    return f"list:{'' if pillar is None else pillar.value}:{mark}:{queue or ''}"


def job(job_id: str) -> str:
    """One job's page; its id counts as watched by itself."""
    return f"job:{job_id}"
