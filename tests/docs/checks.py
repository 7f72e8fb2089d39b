"""Reads blocks of data and of SQL with what will read them in earnest."""

import ast
import configparser
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import yaml

from chokaq.config import load_settings
from tests.docs.blocks import Block
from tests.docs.place import Failed

SECRET = "0123456789abcdef0123456789abcdef"
"""Stands for every variable and file that a YAML block takes a value from; long enough for a secret."""
FOREIGN = (
    {"apiVersion", "kind"},
    {"groups"},
    {"scrape_configs"},
    {"services"},
    {"receivers"},
    {"jobs", "on"},
    {"rules"},
)
"""Keys by which YAML for somebody else is known: Kubernetes, Prometheus, compose, Alertmanager, CI."""


def check_yaml(block: Block, folder: Path) -> None:
    """Load it as chokaq.yaml; YAML for somebody else is only parsed. Raises Failed."""
    try:
        documents = list(yaml.safe_load_all(block.text))
    except yaml.YAMLError as error:
        raise Failed(f"{block.where} is no YAML: {error}") from None
    if all(isinstance(document, dict) and any(keys <= set(document) for keys in FOREIGN) for document in documents):
        return
    secret = folder / "secret"
    secret.write_text(SECRET, encoding="utf-8")
    file = folder / (block.title or "block.yaml")
    file.write_text(re.sub(r"\$\{file:[^}]*\}", f"${{file:{secret}}}", block.text), encoding="utf-8")
    variables = dict.fromkeys(re.findall(r"(?<!\$)\$\{(\w+)\}", block.text), SECRET)
    try:
        load_settings(file, variables)
    except Exception as error:  # noqa: BLE001 - whatever it is, the reader of the page would meet it
        raise Failed(f"{block.where} cannot be loaded: {error}") from None
    finally:
        file.unlink()


def check_sql(block: Block, folder: Path) -> None:
    """Parse it with the SQL Server 2019 grammar. Raises Failed."""
    program, file = Path(sys.executable).with_name("maxdop"), folder / "block.sql"
    file.write_text(block.text, encoding="utf-8")
    ran = subprocess.run([program, "--parser-version", "2019", file], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise Failed(f"{block.where} is no T-SQL: {ran.stdout}{ran.stderr}")


def check_python(block: Block, _folder: Path) -> None:
    """Compile it; `await` may stand at the top. Raises Failed."""
    try:
        compile(block.text, block.where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        raise Failed(f"{block.where} is no Python: {error}") from None


def check_csharp(block: Block, _folder: Path) -> None:
    """No compiler is at hand: its brackets have to close, and its strings. Raises Failed."""
    bare = re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*', "", block.text)
    stack: list[str] = []
    for character in bare:
        if character in "([{":
            stack.append({"(": ")", "[": "]", "{": "}"}[character])
        elif character in ")]}" and (not stack or stack.pop() != character):
            raise Failed(f"{block.where}: {character} closes nothing")
    if stack or '"' in bare:
        raise Failed(f"{block.where}: a bracket or a string is left open")


def check_json(block: Block, _folder: Path) -> None:
    """Read it, one document or one a line. Raises Failed."""
    try:
        json.loads(block.text)
    except ValueError:
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            try:
                json.loads(line)
            except ValueError as error:
                raise Failed(f"{block.where} is no JSON (line {number}): {error}") from None


def check_toml(block: Block, _folder: Path) -> None:
    """Read it. Raises Failed."""
    try:
        tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{block.where} is no TOML: {error}") from None


def check_ini(block: Block, _folder: Path) -> None:
    """Read it, as systemd's unit files are written: a key may stand several times. Raises Failed."""
    try:
        configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(block.text)
    except configparser.Error as error:
        raise Failed(f"{block.where} is no unit file: {error}") from None


def check_dockerfile(block: Block, folder: Path) -> None:
    """Lint it. Raises Failed."""
    program, file = Path(sys.executable).with_name("hadolint"), folder / "Dockerfile"
    file.write_text(block.text, encoding="utf-8")
    ran = subprocess.run([program, file], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise Failed(f"{block.where} is no good Dockerfile: {ran.stdout}{ran.stderr}")


CHECKS: dict[str, Callable[[Block, Path], None]] = {
    "csharp": check_csharp,
    "dockerfile": check_dockerfile,
    "ini": check_ini,
    "json": check_json,
    "python": check_python,
    "sql": check_sql,
    "toml": check_toml,
    "yaml": check_yaml,
}
"""By language. Console and text blocks have rules of their own; any other language fails."""
