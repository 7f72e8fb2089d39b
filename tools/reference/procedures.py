"""docs/tsql.md, out of the comments over the procedures, their parameters, and grants.sql."""

from tools.reference.headers import Paragraph, Procedure, grants, procedures, tables
from tools.reference.markdown import GENERATED, cell, code, table

_INTRODUCTION = """\
# T-SQL reference

Every change of state is one call of one stored procedure, for a whole set of jobs, in one round trip. The procedures are the only
way in: no role has a right on a table, `chokaq_operator` and `chokaq_reader` may read the view `Jobs`. The texts stand in
`sql/procedures/`, one file each; `sql/embedded/` holds the SQLite twin of each under the same name. `chokaq schema script` prints
everything for a DBA.

Rules that hold for all of them:

* Times are UTC by the server's clock; durations are milliseconds; ids are ULIDs.
* Every write by a holder shows the job's lease number; what does not match changes nothing and is answered `stale` (0).
* Each may be called again with the same arguments: after an error, a deadlock, or an answer that was lost.
* A transaction begins and ends inside the procedure (the two that enqueue may also live inside a caller's).
* Tables are touched in the order each one states, rows in the order of their ids.

How many jobs wait, by queue and state:

```sql
SELECT Queue, Status, COUNT(*) AS Jobs FROM chokaq.Jobs GROUP BY Queue, Status ORDER BY Queue, Status;
```

What stopped within the last hour:

```sql
SELECT Id, Queue, Type, Status, FailureReason, FinishedAtUtc
FROM chokaq.Jobs
WHERE Status IN ('Failed', 'Zombie', 'Cancelled') AND FinishedAtUtc >= DATEADD(HOUR, -1, SYSUTCDATETIME())
ORDER BY FinishedAtUtc DESC;
```
"""


def page() -> str:
    """The whole page. Raises HeaderError when a procedure does not say what it should."""
    allowed = grants()
    rows = [(code(name), cell(text)) for name, text in tables().items()]
    parts = [
        f"{GENERATED}\n\n{_INTRODUCTION}",
        f"## Tables\n\n{table(('table or view', 'holds'), rows)}",
        f"## Procedures\n\n{_overview(procedures(), allowed)}",
        *(_procedure(each, allowed.get(each.name, [])) for each in procedures()),
    ]
    return "\n".join(parts)


def _overview(found: list[Procedure], allowed: dict[str, list[str]]) -> str:
    roles = sorted({role for names in allowed.values() for role in names})
    rows = [
        (f"[{each.name}](#{each.name.lower()})", *("•" if role in allowed.get(each.name, []) else "" for role in roles))
        for each in found
    ]
    return table(("procedure", *(f"{role}" for role in roles)), rows)


def _procedure(found: Procedure, roles: list[str]) -> str:
    parts = [f"### {found.name}", "", _text(found.purpose[:1].upper() + found.purpose[1:]), ""]
    for paragraph in found.paragraphs:
        if paragraph.label == "Parameters":
            continue
        parts += [f"**{paragraph.label}:** {_joined(paragraph)}", ""]
    parts += [f"**Executed by:** {', '.join(f'chokaq_{role}' for role in roles) or 'the owner only'}.", ""]
    if found.parameters:
        parts += _parameters(found)
    return "\n".join(parts)


def _parameters(found: Procedure) -> list[str]:
    if set(found.meanings) == set(found.parameters):
        rows = [(code(name), code(kind), cell(found.meanings[name])) for name, kind in found.parameters.items()]
        return [table(("parameter", "type", "meaning"), rows)]
    types = table(("parameter", "type"), [(code(name), code(kind)) for name, kind in found.parameters.items()])
    words = next((paragraph for paragraph in found.paragraphs if paragraph.label == "Parameters"), None)
    return [types] if words is None else [f"**Parameters:** {_joined(words)}", "", types]


def _joined(paragraph: Paragraph) -> str:
    return _text(" ".join(" ".join(paragraph.lines).split()))


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")
