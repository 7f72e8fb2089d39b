"""What travels to a procedure: JSON documents of scalars that need no escape, and one bundle of bytes.

A JSON string that needs an escape does not arrive alike on every engine, so none is sent. Payloads, headers and names are
ASCII and travel as bytes, cut out by their offsets. Free text travels inside the document with its quotes, backslashes and
control characters replaced by 33 characters that occur in no text of the call (`carriers`); the procedure puts them back.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from chokaq.lifecycle.states import KeyScope
from chokaq.store.errors import StoreRefused
from chokaq.store.hashing import payload_hash
from chokaq.store.names import check_ascii, check_name, check_text
from chokaq.store.protocol import MAX_JOBS_PER_CALL
from chokaq.store.records import (
    AttemptError,
    Beat,
    CrashPolicies,
    CrashPolicy,
    Failure,
    Held,
    NewJob,
    Release,
    Retry,
)
from chokaq.store.repairs import since_1970

EMPTY = "[]"
ESCAPED = '"\\' + "".join(map(chr, range(1, 32)))
"""What a JSON string would have to escape, in the order the procedures expect."""
_FIRST_CARRIER, _LAST_CARRIER = 0xE000, 0xF8FF
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_YEAR_MS = 365 * 86_400_000
_LONGEST_DELAY_MS = 7_000 * _YEAR_MS
_LONGEST_AGE_MS = 1_900 * _YEAR_MS
"""What can be added to, or taken from, a clock of our time and stays a date (years 1 … 9999)."""

TYPE_LIMIT, MESSAGE_LIMIT, TRACE_LIMIT, NOTE_LIMIT, PIECE = 255, 4_000, 16_000, 1_000, 4_000
"""UTF-16 code units the columns hold; free text is cut to them, so that a failure can always be recorded."""


def cut(text: str, units: int) -> str:
    """`text`, at most `units` UTF-16 code units long, never ending in half a character."""
    if len(text) <= units // 2 or (len(text) <= units and text.isascii()):
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return text if len(data) <= 2 * units else data[: 2 * units].decode("utf-16-le", "ignore")


def fitting(field: str, text: str | None, units: int) -> str | None:
    """`text`, when a column of `units` UTF-16 code units holds it; else StoreRefused, naming the field."""
    check_text(field, text)
    if text is not None and len(text) > units // 2 and len(text.encode("utf-16-le")) > 2 * units:
        raise StoreRefused(f"{field} is longer than {units} characters (those beyond U+FFFF count two)")
    return text


def milliseconds(instant: datetime) -> int:
    """Milliseconds since 1970 UTC, rounded up: a job is never early."""
    if instant.tzinfo is None:
        raise StoreRefused(f"due_at {instant.isoformat()} has no time zone")
    return -((_EPOCH - instant) // _MILLISECOND)


def span(failed_from: datetime | None, failed_until: datetime | None) -> tuple[int, int]:
    """The two ends of a time range as a procedure takes them; -1: open."""
    ends = since_1970("failed_from", failed_from), since_1970("failed_until", failed_until)
    first, last = (-1 if end is None else end for end in ends)
    return first, last


def carriers(texts: Iterable[str]) -> str:
    """33 private-use characters that occur in none of `texts`."""
    used = {
        character for text in texts if not text.isascii() for character in text if "\ue000" <= character <= "\uf8ff"
    }
    free = (character for character in map(chr, range(_FIRST_CARRIER, _LAST_CARRIER + 1)) if character not in used)
    found = "".join(character for character, _ in zip(free, ESCAPED, strict=False))
    if len(found) < len(ESCAPED):
        raise StoreRefused("the texts of this call use up the whole private-use area of Unicode")
    return found


class Mapping:
    """How the free text of one call travels."""

    def __init__(self, texts: Iterable[str | None]) -> None:
        """`texts`: all of them, to choose characters that none holds."""
        self.carriers = carriers([text for text in texts if text is not None])
        self._table = str.maketrans(ESCAPED, self.carriers)

    def __call__(self, text: str | None) -> str | None:
        """The text as it travels."""
        return None if text is None else text.translate(self._table)


class Bundle:
    """The ASCII texts of a call, one after the other; equal short ones once."""

    def __init__(self) -> None:
        """Empty."""
        self._parts: list[bytes] = []
        self._size = 0
        self._names: dict[str, tuple[int, int]] = {}

    def add(self, text: str) -> tuple[int, int]:
        """Append a text; its start (from 1) and length."""
        data = text.encode("ascii")
        start = self._size + 1
        self._parts.append(data)
        self._size += len(data)
        return start, len(data)

    def name(self, text: str) -> tuple[int, int]:
        """Like `add`, for texts that many jobs of the call share."""
        place = self._names.get(text)
        if place is None:
            place = self._names[text] = self.add(text)
        return place

    def data(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)


def dump(rows: list[dict[str, Any]]) -> str:
    """The document as text."""
    return orjson.dumps(rows).decode("utf-8")


def bounded(rows: Sequence[Any]) -> None:
    """Raises StoreRefused for more jobs than one call may carry."""
    if len(rows) > MAX_JOBS_PER_CALL:
        raise StoreRefused(f"a call carries at most {MAX_JOBS_PER_CALL:,} jobs, not {len(rows):,}")


def validate(jobs: Sequence[NewJob]) -> None:
    """Refuse what the store cannot hold, naming the field, before any SQL runs. Raises StoreRefused."""
    bounded(jobs)
    for job in jobs:
        if not is_id(job.id):
            raise StoreRefused(
                f"{job.id!r} is no id: 1 to 26 printable ASCII characters without quotes, commas, colons and \\"
            )
        check_name("queue", job.queue)
        check_name("type key", job.type_key)
        check_ascii("payload", job.payload)
        check_ascii("headers", job.headers)
        if job.headers is not None and len(job.headers) > 4_000:
            raise StoreRefused("headers are longer than 4,000 bytes")
        fitting("tags", job.tags, 1_000)
        fitting("created_by", job.created_by, 100)
        fitting("idempotency key", job.idempotency_key, 255)
        if max(job.delay_ms, job.key_window_ms or 0) > _LONGEST_DELAY_MS:
            raise StoreRefused(f"job {job.id}: a delay or key window ends after the year 9999")


class Enqueue(NamedTuple):
    """One call of EnqueueJobs or EnqueueKeyedJobs: the procedure, and its parameters but the last (@InCaller)."""

    procedure: str
    parameters: tuple[Any, ...]


def enqueue(jobs: Sequence[NewJob]) -> Enqueue:
    """The call that enqueues `jobs`, which have been validated and are unique by id and key."""
    mapped, document, data = new_jobs(jobs)
    if any(job.idempotency_key is not None for job in jobs):
        return Enqueue("EnqueueKeyedJobs", (mapped, document, data))
    return Enqueue("EnqueueJobs", (mapped, ",".join(sorted([job.id for job in jobs])), document, data))


def new_jobs(jobs: Sequence[NewJob]) -> tuple[str, str, bytes]:
    """Mapping characters, document and bundle."""
    mapped = Mapping(text for job in jobs for text in (job.tags, job.created_by, job.idempotency_key))
    bundle = Bundle()
    rows = []
    # By key, so that two callers take their keys in one order.
    for job in sorted(jobs, key=lambda job: (job.idempotency_key or "", job.id)):
        queue, queue_length = bundle.name(job.queue)
        kind, kind_length = bundle.name(job.type_key)
        payload, payload_length = bundle.add(job.payload)
        row: dict[str, Any] = {
            "i": job.id, "qa": queue, "qn": queue_length, "ta": kind, "tn": kind_length, "pa": payload,
            "pn": payload_length, "p": job.priority, "d": max(job.delay_ms, 0), "z": payload_hash(job.payload),
            "s": int(job.key_scope),
        }  # fmt: skip
        if job.due_at is not None:
            row["u"] = milliseconds(job.due_at)
        if job.headers is not None:
            row["ha"], row["hn"] = bundle.add(job.headers)
        if job.tags is not None:
            row["g"] = mapped(job.tags)
        if job.created_by is not None:
            row["c"] = mapped(job.created_by)
        if job.idempotency_key is not None:
            row["k"] = mapped(job.idempotency_key)
        if job.key_scope == KeyScope.WINDOW:
            row["w"] = max(job.key_window_ms or 0, 0)
        rows.append(row)
    return mapped.carriers, dump(rows), bundle.data()


def ids(job_ids: Iterable[str]) -> str:
    """A document of ids, each once; what cannot be an id is left out (the answer is that it is unknown)."""
    return dump([{"i": job_id} for job_id in dict.fromkeys(job_ids) if is_id(job_id)])


_NOT_IN_AN_ID = frozenset('"\\,:;')


def is_id(text: str) -> bool:
    """Whether `text` may be the id of a row. A longer one would be cut on the way and meet another job."""
    return 0 < len(text) <= 26 and text.isascii() and text.isprintable() and _NOT_IN_AN_ID.isdisjoint(text)


def by_lease(held: Iterable[Held]) -> str:
    """A text of ids by lease number, each pair once: "1:id,id;2:id;" (StartJobs, ArchiveSucceeded)."""
    groups: dict[int, dict[str, None]] = {}
    for job in held:
        if is_id(job.id):
            groups.setdefault(job.lease, {})[job.id] = None
    return "".join([f"{lease}:{','.join(ids)};" for lease, ids in groups.items()])


def leases(held: Iterable[Held]) -> str:
    """A document of (id, lease), each pair once."""
    pairs = dict.fromkeys((job.id, job.lease) for job in held)
    return dump([{"i": job_id, "l": lease} for job_id, lease in pairs if is_id(job_id)])


def beats(given: Sequence[Beat]) -> tuple[str, str]:
    """Mapping characters and document of KeepAlive."""
    for beat in given:
        check_text("note", beat.note)
    mapped = Mapping(beat.note for beat in given)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for beat in given:
        row = rows.setdefault((beat.id, beat.lease), {"i": beat.id, "l": beat.lease})
        if beat.progress is not None:
            row["p"] = max(0, min(beat.progress, 100))
        if beat.note is not None:
            row["n"] = mapped(cut(beat.note, NOTE_LIMIT))
    return mapped.carriers, dump([row for row in rows.values() if is_id(row["i"])])


def retries(given: Sequence[Retry]) -> tuple[str, str]:
    """Mapping characters and document of RescheduleForRetry."""
    mapped = Mapping(text for retry in given for text in _texts(retry.error))
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for retry in given:
        row: dict[str, Any] = {
            "i": retry.id, "l": retry.lease, "d": _span(retry.delay_ms), "r": int(retry.reason), **_error(retry.error, mapped)
        }  # fmt: skip
        if retry.max_age_ms is not None:
            row["a"] = _span(retry.max_age_ms, _LONGEST_AGE_MS)
        rows.setdefault((retry.id, retry.lease), row)
    return mapped.carriers, dump([row for row in rows.values() if is_id(row["i"])])


def failures(given: Sequence[Failure]) -> tuple[str, str]:
    """Mapping characters and document of ArchiveFailed."""
    mapped = Mapping(text for failure in given for text in _texts(failure.error))
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for failure in given:
        row = {
            "i": failure.id, "l": failure.lease, "s": int(failure.status), "r": int(failure.reason),
            **_error(failure.error, mapped),
        }  # fmt: skip
        rows.setdefault((failure.id, failure.lease), row)
    return mapped.carriers, dump([row for row in rows.values() if is_id(row["i"])])


def releases(given: Sequence[Release]) -> str:
    """The document of ReleaseJobs."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for release in given:
        row: dict[str, Any] = {"i": release.id, "l": release.lease}
        if release.delay_ms is not None:
            row["d"] = _span(release.delay_ms)
        if release.max_age_ms is not None:
            row["a"] = _span(release.max_age_ms, _LONGEST_AGE_MS)
        rows.setdefault((release.id, release.lease), row)
    return dump([row for row in rows.values() if is_id(row["i"])])


def policies(given: CrashPolicies) -> tuple[str, str]:
    """The two documents of a crash policy: the policies, and their backoff steps."""
    named = {"": given.default} | {type_key.lower(): policy for type_key, policy in given.types.items()}
    rows, steps = [], []
    for type_key, policy in named.items():
        name = type_key.translate(_POLICY_NAMES)
        delays = policy.backoff_ms or (0,)
        rows.append(_policy(name, policy, len(delays)))
        steps += [{"t": name, "n": step, "d": _span(delay)} for step, delay in enumerate(delays, 1)]
    return dump(rows), dump(steps)


_POLICY_NAMES = str.maketrans('"\\', "\ue000\ue001")
"""Type keys are printable ASCII: two characters need a stand-in, and none can be one."""


def _policy(name: str, policy: CrashPolicy, steps: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "t": name,
        "c": int(policy.on_crash == "retry"),
        "l": policy.crash_limit,
        "m": policy.max_attempts,
        "k": steps,
    }
    if policy.max_age_ms is not None:
        row["a"] = _span(policy.max_age_ms, _LONGEST_AGE_MS)
    return row


def _span(ms: int, longest: int = _LONGEST_DELAY_MS) -> int:
    """A duration the server can add to its clock."""
    return max(0, min(ms, longest))


def _texts(error: AttemptError | None) -> tuple[str | None, ...]:
    if error is None:
        return ()
    for field, text in (("error type", error.type), ("error message", error.message), ("error trace", error.trace)):
        check_text(field, text)
    return error.type, error.message, error.trace


def _error(error: AttemptError | None, mapped: Mapping) -> dict[str, Any]:
    if error is None:
        return {}
    row = {"t": mapped(cut(error.type, TYPE_LIMIT)), "m": mapped(cut(error.message, MESSAGE_LIMIT))}
    if error.trace is not None:
        # In pieces: one engine gives back 4,000 characters of a string at most.
        for piece, text in enumerate(_pieces(cut(error.trace, TRACE_LIMIT)), 1):
            row[f"x{piece}"] = mapped(text)
    return row


def _pieces(text: str) -> list[str]:
    """`text` in pieces of at most 4,000 UTF-16 code units, at least one; a trace makes four (a split pair may cost one unit)."""
    pieces = []
    while True:
        piece = cut(text, PIECE)
        pieces.append(piece)
        text = text[len(piece) :]
        if not text or len(pieces) == TRACE_LIMIT // PIECE:
            return pieces
