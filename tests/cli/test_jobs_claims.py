"""`chokaq jobs show`: the idempotency keys of a job, and what its run kept."""

from pathlib import Path

from chokaq.store.claims import Completion, RunClaim
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.support.holder import Holder

from .conftest import Cli, enqueue


def test_a_job_shows_its_keys_and_the_result_that_was_kept(cli: Cli, folder: Path) -> None:
    job = enqueue(cli)
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder / 'chokaq.db'}")).session()
    holder = Holder(session, "emails")
    held = holder.take_one()
    session.claim_runs(
        holder.worker, [RunClaim("mail:[7]", job, held.lease, 60_000), RunClaim("b", job, held.lease, 60_000)]
    )
    session.complete_runs(holder.worker, [Completion("mail:[7]", job, held.lease, None, '{"sent":"\\u00e9"}')])
    session.close()

    shown = cli("jobs", "show", job, "--json").json["claims"]

    assert [(claim["key"], claim["state"], claim["result"]) for claim in shown] == [
        ("b", "running", None),
        ("mail:[7]", "done", {"sent": "é"}),
    ]
    assert shown[1]["expires_at"] is None
    assert shown[1]["done_at"].endswith("Z")
    out = cli("jobs", "show", job).out
    assert "Idempotency keys" in out
    assert "mail:[7]" in out
    assert '{"sent":"\\u00e9"}' in out
    assert "never" in out


def test_a_job_without_keys_shows_no_table_of_them(cli: Cli) -> None:
    job = enqueue(cli)
    assert cli("jobs", "show", job, "--json").json["claims"] == []
    assert "Idempotency keys" not in cli("jobs", "show", job).out
