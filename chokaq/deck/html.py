"""The few pages that stand outside the pages' library: sign-in and refusals. No script, nothing loaded."""

from html import escape

STRICT_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

BOUNCE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>chokaq</title>'
"""Asks for the same page once more, now as this site."""

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { width: min(22rem, 90vw); }
h1 { font-size: 1.25rem; margin: 0 0 1rem; }
label { display: block; margin: .75rem 0 .25rem; }
input { box-sizing: border-box; width: 100%; padding: .5rem; font: inherit; }
button { margin-top: 1.25rem; padding: .5rem 1rem; font: inherit; }
.problem { color: #b00020; }
@media (prefers-color-scheme: dark) { .problem { color: #ff8a80; } }
"""


def page(title: str, sentence: str) -> str:
    """A page that says one thing."""
    return _frame(title, f"<h1>{escape(title)}</h1><p>{escape(sentence)}</p>")


def sign_in_page(title: str, action: str, target: str, problem: str | None = None, name: str = "") -> str:
    """The form."""
    told = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    return _frame(
        f"Sign in - {title}",
        f"""<h1>{escape(title)}</h1>{told}
<form method="post" action="{escape(action)}">
<input type="hidden" name="next" value="{escape(target)}">
<label for="name">Name</label>
<input id="name" name="name" autocomplete="username" required maxlength="100" value="{escape(name)}"{"" if name else " autofocus"}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="1000">
<button type="submit">Sign in</button>
</form>""",
    )


def _frame(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>"
    )
