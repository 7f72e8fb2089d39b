"""The few pages that stand outside the pages' library: sign-in and refusals. No script, nothing loaded."""

from html import escape

STRICT_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

BOUNCE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>chokaq</title>'
"""Asks for the same page once more, now as this site."""

_STYLE = """
:root { color-scheme: light dark; --bg: #f4f5f7; --card: #fff; --ink: #1c2430; --mute: #566173; --line: #dde1e7; --bad: #b3261e;
  --badbg: #fce6e4; --accent: #2757c4; }
@media (prefers-color-scheme: dark) { :root { --bg: #10141b; --card: #171d27; --ink: #e3e8f0; --mute: #98a4b8; --line: #2a3342;
  --bad: #ff9c93; --badbg: #421f1d; --accent: #8fb4ff; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { width: min(23rem, calc(100vw - 2rem)); padding: 1.75rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
h1 { font-size: 1.2rem; line-height: 1.3; margin: 0 0 .5rem; } p { margin: 0; color: var(--mute); }
label { display: block; margin: .9rem 0 .25rem; color: var(--mute); font-size: .85rem; }
input { width: 100%; padding: .55rem .65rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--bg); color: var(--ink);
  font: inherit; }
button { width: 100%; margin-top: 1.4rem; padding: .6rem; border: 0; border-radius: 6px;
  background: #2757c4; color: #fff; font: inherit;
  font-weight: 600; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.problem { padding: .55rem .75rem; margin-top: .75rem; border-radius: 6px; background: var(--badbg); color: var(--bad); }
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
