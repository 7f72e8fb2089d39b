"""What an action by filter would touch: the operations' preview, and one for a single type of error."""

from chokaq.deck.searching import pillars_of
from chokaq.deck.shown import Search
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.operations.confirm import Action
from chokaq.operations.errors import OperationError
from chokaq.operations.filters import dlq_filter
from chokaq.operations.jobs import MAX_BATCH, MAX_PAGE
from chokaq.operations.repair import COUNTED, Preview, preview_jobs
from chokaq.store.looking import Browse
from chokaq.store.protocol import Session

_ACTIONS = {action.value: action for action in (Action.RESURRECT, Action.DROP, Action.PURGE)}


def read_preview(session: Session, where: Search, action: str, maximum: int) -> Preview:
    """Count and choose the jobs of the DLQ that a search means. `maximum`: 1 to 1,000. Raises OperationError."""
    wanted = _ACTIONS.get(action)
    if wanted is None:
        raise OperationError(f"an action by filter is {', '.join(_ACTIONS)}, not {action[:60]!r}")
    if where.pillar is not Pillar.DLQ and pillars_of(where) != [Pillar.DLQ]:
        raise OperationError("an action by filter is for the DLQ: choose the pillar dlq")
    pillars_of(where)
    if where.error_type is None:
        chosen = dlq_filter(
            queue=where.queue,
            type_key=where.type_key,
            reason=None if where.reason is None else where.reason.label,
            status=None if where.status is None else where.status.label,
            tag=where.tag,
            failed_from=where.stopped_from,
            failed_until=where.stopped_until,
            search=where.text,
        )
        return preview_jobs(session, chosen, wanted, maximum)
    if not 1 <= maximum <= MAX_BATCH:
        raise OperationError(f"an action by filter touches at most 1 to {MAX_BATCH:,} jobs, not {maximum:,}")
    ids, more = _of_one_error(session, where, keep_dropped=wanted is Action.PURGE)
    return Preview(action=wanted, matched=min(len(ids), COUNTED), more=more, maximum=maximum, ids=ids[:maximum])


def _of_one_error(session: Session, where: Search, *, keep_dropped: bool) -> tuple[list[str], bool]:
    """Ids, newest first; counting goes no further than 10,000 jobs or two looks."""
    browse = Browse(
        pillar=Pillar.DLQ,
        queue=where.queue,
        status=where.status,
        type_key=where.type_key,
        reason=where.reason,
        error_type=where.error_type,
        tag=where.tag,
        text=where.text,
        ended_from=where.stopped_from,
        ended_until=where.stopped_until,
    )
    ids: list[str] = []
    place, looks = None, 0
    while len(ids) < COUNTED and looks < 2:
        page = session.browse_jobs(browse, MAX_PAGE, place)
        ids += [job.id for job in page.jobs if keep_dropped or job.status is not JobStatus.DROPPED]
        looks += page.partial
        place = page.after
        if place is None:
            return ids, False
    return ids, True
