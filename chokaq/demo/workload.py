"""The seed's workload: 1,000 e-mails, 50,000 messages, 300 Excel reports, scaled."""

import importlib
from typing import Any

import msgspec

EMAILS, MESSAGES, REPORTS = 1_000, 50_000, 300


class Workload(msgspec.Struct, frozen=True):
    """The jobs of one run, per queue."""

    queues: dict[str, list[Any]]

    @property
    def total(self) -> int:
        return sum(len(jobs) for jobs in self.queues.values())


def recipient(number: int) -> str:
    """Every 50th is gone for ever, every 20th is greylisted at first."""
    kind = "gone" if number % 50 == 7 else "greylist" if number % 20 == 0 else "customer"
    return f"{kind}{number}@example.com"


def build(scale: float) -> Workload:
    """The workload times `scale` (at least one job a queue). Needs the shop's folder on sys.path."""
    shop = importlib.import_module("shop.jobs")
    subjects = importlib.import_module("shop.reports").subjects

    def count(full: int) -> int:
        return max(1, round(full * scale))

    return Workload(
        {
            "emails": [shop.SendEmail(recipient(number), "invoice") for number in range(count(EMAILS))],
            "messages": [shop.SendMessage(number % 1_000, f"message {number}") for number in range(count(MESSAGES))],
            "reports": [shop.CreateReport(subject) for subject in subjects(count(REPORTS))],
        }
    )
