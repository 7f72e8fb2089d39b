"""Run claims on the embedded store."""

from collections.abc import Sequence

from chokaq.lifecycle.states import Answer
from chokaq.store.claims import ClaimAnswer, Claiming, ClaimView, Completion, RunClaim, check_claims
from chokaq.store.records import Registration
from chokaq.store.sqlite.connection import Connected, bounded, document
from chokaq.store.sqlite.statements import load
from chokaq.store.sqlite.views import VIEWS

_CLAIM, _RENEW = load("ClaimRuns"), load("RenewClaims")["renew"]
_COMPLETE, _RELEASE, _LIST = load("CompleteRuns"), load("ReleaseClaims"), load("ListClaims")["list"]


class ClaimOperations(Connected):
    """See `chokaq.store.claims.ClaimSession`."""

    def claim_runs(self, worker: Registration, claims: Sequence[RunClaim]) -> list[ClaimAnswer]:
        """Claim keys for running jobs."""
        values = _document(claims)
        if not claims:
            return []
        with self._writing() as (connection, now):
            connection.execute(_CLAIM["claim"], values | {"worker": worker.worker_id, "now": now})
            rows = connection.execute(_CLAIM["shown"], values | {"now": now}).fetchall()
        found = {key: ClaimAnswer(Claiming(state), *rest) for key, state, *rest in rows}
        return [found[claim.key] for claim in claims]

    def renew_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Move the expiry of claims still held."""
        values = _document(claims)
        if not claims:
            return []
        with self._writing() as (connection, now):
            renewed = {key for (key,) in connection.execute(_RENEW, values | {"now": now}).fetchall()}
        return _answers(claims, renewed)

    def complete_runs(self, worker: Registration, completions: Sequence[Completion]) -> list[Answer]:
        """Turn claims into markers of completed runs."""
        bounded(completions)
        check_claims(completions)
        if not completions:
            return []
        rows = [(done.key, done.id, done.lease, done.ttl_ms, done.result) for done in completions]
        values = {"claims": document(rows)}
        with self._writing() as (connection, now):
            connection.execute(_COMPLETE["complete"], values | {"now": now})
            done = {key for (key,) in connection.execute(_COMPLETE["shown"], values).fetchall()}
        return _answers(completions, done)

    def release_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Give up claims whose run has not completed."""
        values = _document(claims)
        if not claims:
            return []
        with self._writing() as (connection, _now):
            connection.execute(_RELEASE["release"], values)
            taken = {key for (key,) in connection.execute(_RELEASE["taken"], values).fetchall()}
        return _answers(claims, {claim.key for claim in claims} - taken)

    def list_claims(self, job_id: str) -> list[ClaimView]:
        """Claims and markers of one job."""
        return [VIEWS.claim(row) for row in self._select(_LIST, {"id": job_id})]


def _document(claims: Sequence[RunClaim]) -> dict[str, object]:
    bounded(claims)
    check_claims(claims)
    return {"claims": document([(claim.key, claim.id, claim.lease, claim.ttl_ms) for claim in claims])}


def _answers(claims: Sequence[RunClaim | Completion], applied: set[str]) -> list[Answer]:
    return [Answer.APPLIED if claim.key in applied else Answer.STALE for claim in claims]
