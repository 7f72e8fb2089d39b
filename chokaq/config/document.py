"""Reading the YAML text into plain values, each with its line; duplicate keys and anything unsafe are problems, not guesses."""

import re
from typing import Any

import yaml

from chokaq.config.errors import ConfigError, Problem
from chokaq.config.variables import VariableError, has_marks, hold_out, put_back

MAX_NODES = 100_000

Path = tuple[str, ...]


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of YAML 1.2: `1:30` is text, not 90, and `on` is text, not true."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9_]*)", list("-+0123456789")),
    ("tag:yaml.org,2002:float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("tag:yaml.org,2002:merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), _first)


def path_text(path: Path) -> str:
    """`queues.emails.max_workers`; a part that holds a dot or a space is put in brackets: `types["email.send.v1"]`."""
    text = ""
    for part in path:
        if not part or any(sign in part for sign in '. []"'):
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


class Document:
    """A parsed YAML file: plain dicts, lists and scalars, with the line of every value by its path.

    Variables are still held out: `held` has their expressions (chokaq.config.variables).
    """

    def __init__(self, text: str, source: str) -> None:
        """Raises ConfigError when it is no YAML, or not a mapping at the top."""
        try:
            text, self.held = hold_out(text)
        except VariableError as error:
            raise ConfigError(str(error), source) from None
        self.problems: list[Problem] = []
        self.lines: dict[Path, int] = {}
        self._left = MAX_NODES
        self._source = source
        try:
            loader = _Loader(text)
            try:
                node = loader.get_single_node()
                self._loader = loader
                value = None if node is None else self._value(node, (), ())
            finally:
                loader.dispose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise ConfigError(
                [Problem("", f"not valid YAML: {error.problem}", mark.line + 1 if mark else None)], source
            ) from None
        except yaml.YAMLError as error:
            raise ConfigError(f"not valid YAML: {error}", source) from None
        if value is not None and not isinstance(value, dict):
            raise ConfigError("must hold a mapping at the top (`queues:`, `database:` …)", source)
        self.tree: dict[str, Any] = value or {}

    def _problem(self, path: Path, message: str, node: yaml.Node) -> None:
        self.problems.append(Problem(path_text(path), message, node.start_mark.line + 1))

    def _value(self, node: yaml.Node, path: Path, above: tuple[yaml.Node, ...]) -> Any:
        self._left -= 1
        if self._left < 0 or any(node is other for other in above):
            raise ConfigError([Problem(path_text(path), "aliases repeat themselves without end")], self._source)
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path, (*above, node))
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self._value(item, (*path, str(index)), (*above, node)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag.startswith("tag:yaml.org,2002:"):
            try:
                return self._loader.construct_object(node)
            except (yaml.YAMLError, ValueError):
                pass
        self._problem(path, f"the tag {node.tag} is not understood here", node)
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[yaml.Node, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merged(value_node, path, above), **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                name = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
                self._problem(path, f"a key must be text, got {name} (put it in quotes)", key_node)
                continue
            key = str(key_node.value)
            here = (*path, key)
            if has_marks(key):
                self._problem((*path, put_back(key, self.held)), "a variable may stand in a value only", key_node)
                continue
            if key in found:
                self._problem(here, f"given twice (first on line {self.lines[here]})", key_node)
                continue
            found[key] = self._value(value_node, here, above)
            self.lines[here] = key_node.start_mark.line + 1
        return {**merged, **found}

    def _merged(self, node: yaml.Node, path: Path, above: tuple[yaml.Node, ...]) -> dict[str, Any]:
        line = self.lines[path]
        sources = list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            value = self._value(source, path, above)
            if isinstance(value, dict):
                merged = {**value, **merged}
            else:
                self._problem(path, "`<<` takes a mapping or a list of mappings", source)
        self.lines[path] = line
        return merged
