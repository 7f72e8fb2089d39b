"""Runs the Python blocks of one page in one namespace: an order a line on stdin, an answer a line on the real stdout.

An order is {code, file, line} or {module} (import it, anew if it was imported before); the answer {printed, error}. `await` may
stand at the top of a block, as in `python -m asyncio`.
"""

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import json
import linecache
import sys
import traceback
from types import CodeType
from typing import Any

_NAMESPACE: dict[str, Any] = {"__name__": "__main__"}


def main() -> None:
    """Until stdin ends."""
    answers = sys.stdout
    sys.path.insert(0, ".")
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            order, printed, error = json.loads(line), io.StringIO(), None
            with contextlib.redirect_stdout(printed):
                try:
                    _carry_out(order, runner)
                except BaseException:  # noqa: BLE001 - whatever a page does is for its test to judge
                    error = traceback.format_exc()
            answers.write(json.dumps({"printed": printed.getvalue(), "error": error}) + "\n")
            answers.flush()


def _carry_out(order: dict[str, Any], runner: asyncio.Runner) -> None:
    if "module" in order:
        importlib.invalidate_caches()
        if (known := sys.modules.get(order["module"])) is not None:
            importlib.reload(known)
        else:
            importlib.import_module(order["module"])
        return
    code = _compiled(order["code"], order["file"], order["line"])
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(_awaited(code))
    else:
        exec(code, _NAMESPACE)


async def _awaited(code: CodeType) -> None:
    await eval(code, _NAMESPACE)


def _compiled(text: str, file: str, line: int) -> CodeType:
    """Code whose traceback names the page and the line in it."""
    source = "\n" * (line - 1) + text
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return compile(source, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


if __name__ == "__main__":
    main()
