"""The meaning of every setting: the docstring that stands under its field."""

import ast
import inspect
import textwrap
from functools import cache


@cache
def field_docs(settings: type) -> dict[str, str]:
    """Field name → its docstring in one line, for one settings class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(settings)))
    body = tree.body[0].body  # type: ignore[attr-defined]  # the source of a class is one class statement
    docs: dict[str, str] = {}
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = " ".join(str(following.value.value).split())
            docs[statement.target.id] = text
    return docs
