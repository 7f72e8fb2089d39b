"""docs/configuration.md, out of the settings' types, their rules and their docstrings."""

from typing import NamedTuple

import msgspec

from chokaq.config import sections
from chokaq.config.docs import field_docs
from chokaq.config.rules import Rule
from chokaq.config.sections import ENVIRONMENT, OTHER_ENVIRONMENT, SECTIONS, Section
from chokaq.config.settings import Policy, QueueSettings, Settings
from tools.reference.markdown import GENERATED, cell, code, table

_INTRODUCTION = """\
# Configuration

Settings come from `chokaq.yaml`: the file that `--config` names, else `$CHOKAQ_CONFIG`, else the one in the working directory;
without a file the defaults hold. Everything that is wrong is reported at once, with its path and line, before anything starts.

```console
chokaq config --example > chokaq.yaml    # every option with its meaning and default
chokaq check                             # the file, the application and the database
chokaq config --show                     # what holds, and the line or variable it comes from
```

**Durations**: `1h30m`, `15s`, `500ms`, `2d`, or a number of seconds. **Sizes**: `512MB`, or a number of bytes. **Relative SQLite
paths** start at the file's folder.

**Variables** may stand in any value: `${NAME}`, `${NAME:-default}`, `${file:/run/secrets/password}` (the content of a file);
`$${NAME}` is the text itself. They are filled in after the YAML was parsed, and percent-encoded inside a URL, so no password can
break the file.

**Which one holds**: an operator's override in the database (`chokaq queues set`), then `types:`, then what the code says
(`@app.job(…, max_attempts=5)`), then the queue's own options, then `defaults:`, then the default below.

```yaml
app: shop.jobs:app
database: ${CHOKAQ_DATABASE_URL:-sqlite:///chokaq.db}
defaults: {max_attempts: 5}
queues:
  emails:  {max_workers: 20, retry_base_delay: 500ms}
  reports: {max_workers: 3, execution_timeout: 1h, zombie_timeout: 40m, fleet_max_workers: 6}
types:
  report.make.v1: {on_timeout: retry}
```
"""

_HEADINGS = {
    "database": "Where the jobs live. Instead of the section a bare URL will do: `database: sqlite:///chokaq.db`. For more than "
    "one, `databases:` maps names to such sections, in place of `database:`. See [Several databases](databases.md).",
    "supervisor": "The parent process of a worker.",
    "maintenance": "The process that cleans up after dead workers and deletes old rows.",
    "envelope": "Limits of what may be enqueued.",
    "idempotency": "The middleware `chokaq.idempotent`, where the code that uses it does not say otherwise.",
    "metrics": "What the processes of a worker count for Prometheus. See [Metrics](metrics.md).",
    "deck": "The Deck, the web dashboard; it needs the extra `chokaq[deck]`. See [The Deck](deck.md).",
    "probes": "What a worker answers to probes, on a port of its own. See [Health](health.md).",
}
"""What is said above a section; one that is not named here gets the docstring of its settings class."""

_QUEUES = """\
## Queues

`queues:` names the queues that a worker serves; without it, every queue the application uses. Each takes the options of this
section and of [Policy](#policy), for itself; `defaults:` takes them for all. `$CHOKAQ_QUEUES` or `--queue` narrow what one worker
serves.

"""
_POLICY = """\
## Policy

How a job is run and what becomes of its failures: under `defaults:`, in a queue, in `types:` by type key, and in
`@app.job("…", max_attempts=5)`.

"""


class Part(NamedTuple):
    """One section of the file."""

    name: str
    owner: type[msgspec.Struct]
    rules: Section
    defaults: msgspec.Struct


def page() -> str:
    """The whole page."""
    parts = [
        f"{GENERATED}\n\n{_INTRODUCTION}\n## At the top\n\n{_options(Part('', Settings, sections.TOP, Settings()))}",
        _QUEUES
        + _options(Part("queues", QueueSettings, {**sections.QUEUE, **sections.QUEUE_ALONE}, QueueSettings(name=""))),
        _POLICY + _options(Part("policy", Policy, sections.POLICY, Policy())),
        *(_section(part) for part in _plain_sections()),
        _variables(),
    ]
    return "\n".join(parts)


def _plain_sections() -> list[Part]:
    """Every section that is neither queues, defaults nor types: its rules stand in chokaq.config.sections under its name."""
    found = []
    for name in SECTIONS:
        rules = getattr(sections, name.upper(), None)
        if rules is not None and name not in {"queues", "defaults", "types"}:
            defaults = getattr(Settings(), name)
            found.append(Part(name, type(defaults), rules, defaults))
    return found


def _section(part: Part) -> str:
    words = _HEADINGS.get(part.name) or _first_line(part.owner)
    return f"## `{part.name}`\n\n{words}\n\n{_options(part)}{_USERS if part.name == 'deck' else ''}"


def _first_line(owner: type[msgspec.Struct]) -> str:
    return (owner.__doc__ or "").strip().splitlines()[0]


_USERS = (
    "\n`users:` maps names to `{password_hash: …, role: viewer}`; `chokaq deck --hash-password` prints the hash of a password. "
    "Roles are `viewer` and `operator`.\n"
)


def _options(part: Part) -> str:
    docs = field_docs(part.owner)
    rows = [
        (code(name), code(rule.text(getattr(part.defaults, name))), cell(_allowed(rule)), cell(_meaning(docs[name])))
        for name, rule in part.rules.items()
    ]
    return table(("option", "default", "allowed", "meaning"), rows)


def _allowed(rule: Rule) -> str:
    return " or ".join(filter(None, (rule.span or rule.wants, "null" if rule.optional else "")))


def _meaning(text: str) -> str:
    return text.replace("None:", "null:").replace(" Holds secrets: never printed as it is.", "")


def _variables() -> str:
    names = {
        "CHOKAQ_CONFIG": "the YAML file",
        "CHOKAQ_QUEUES": "the queues that a worker serves, a comma-separated part of those it knows",
    }
    rows = [(code(name), code(".".join(path))) for name, path in ENVIRONMENT.items()]
    rows += [(code(name), names.get(name, "")) for name in OTHER_ENVIRONMENT]
    return "## Environment\n\nThese win over the file.\n\n" + table(("variable", "option"), rows)
