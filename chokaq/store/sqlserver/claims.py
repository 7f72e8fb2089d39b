"""Run claims on SQL Server."""

from collections.abc import Sequence
from typing import Any

from chokaq.lifecycle.states import Answer
from chokaq.store.claims import ClaimAnswer, Claiming, ClaimView, Completion, RunClaim, check_claims
from chokaq.store.records import Registration
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.link import Rows


class ClaimOperations(Calling):
    """See `chokaq.store.claims.ClaimSession`."""

    def claim_runs(self, worker: Registration, claims: Sequence[RunClaim]) -> list[ClaimAnswer]:
        """Claim keys for running jobs."""
        [rows] = self._call("ClaimRuns", worker.worker_id, *_document(claims))
        found = {number: ClaimAnswer(Claiming(state), *rest) for number, state, *rest in rows}
        return [found[number] for number in range(len(claims))]

    def renew_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Move the expiry of claims still held."""
        [rows] = self._call("RenewClaims", *_document(claims))
        return _answers(claims, rows)

    def complete_runs(self, worker: Registration, completions: Sequence[Completion]) -> list[Answer]:
        """Turn claims into markers of completed runs."""
        check_claims(completions)
        bundle = documents.Bundle()
        results = [{} if done.result is None else _placed(bundle, done.result) for done in completions]
        [rows] = self._call("CompleteRuns", *_document(completions, results), bundle.data())
        return _answers(completions, rows)

    def release_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Give up claims whose run has not completed."""
        [rows] = self._call("ReleaseClaims", *_document(claims))
        return _answers(claims, rows)

    def list_claims(self, job_id: str) -> list[ClaimView]:
        """Claims and markers of one job."""
        if not documents.is_id(job_id):
            return []
        return [views.VIEWS.claim(row) for row in self._call("ListClaims", job_id)[0]]


def _document(claims: Sequence[RunClaim | Completion], more: Sequence[dict[str, Any]] | None = None) -> tuple[str, str]:
    """Mapping characters and document of a set of claims."""
    documents.bounded(claims)
    check_claims(claims)
    mapped = documents.Mapping(claim.key for claim in claims)
    rows = []
    for number, claim in enumerate(claims):
        row: dict[str, Any] = {"n": number, "i": claim.id, "l": claim.lease, "k": mapped(claim.key)}
        if claim.ttl_ms is not None:
            row["t"] = claim.ttl_ms
        rows.append(row if more is None else row | more[number])
    return mapped.carriers, documents.dump(rows)


def _placed(bundle: documents.Bundle, result: str) -> dict[str, int]:
    start, length = bundle.add(result)
    return {"ra": start, "rn": length}


def _answers(claims: Sequence[RunClaim | Completion], rows: Rows) -> list[Answer]:
    found = {row[0]: row[1] for row in rows}
    return [Answer(found.get(number, 0)) for number in range(len(claims))]
