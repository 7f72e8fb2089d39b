"""`chokaq health`: what the worker on this host answers to its probes; for people, health checks of containers, and exec probes."""

import http.client
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit
from chokaq.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from chokaq.config.settings import ProbesSettings

LARGEST = 4_000_000
"""Bytes of an answer that are read."""


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("health")(health)


def health(
    ctx: typer.Context,
    live: Annotated[bool, typer.Option("--live", help="Only whether it lives (/livez).")] = False,
    ready: Annotated[bool, typer.Option("--ready", help="Only whether it can take work (/readyz).")] = False,
    host: Annotated[str | None, typer.Option(help="Ask at this address (probes.host).")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Ask at this port (probes.port).")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds to wait for the answer.")] = 5.0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the worker on this host how it is. Exit code 0: well; 1: not, or nobody answers.

    With --port no configuration is read.
    """
    common = Common.of(ctx, config, None, as_json)
    if live and ready:
        raise typer.BadParameter("name one of --live and --ready, or neither for everything")
    if port is None:
        where, port = _place(common.settings().probes)
        host = host or where
    path = "/livez" if live else "/readyz" if ready else "/healthz"
    status, found = _ask(_reachable(host or "127.0.0.1"), port, path, timeout)
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json(found)
    else:
        typer.echo("\n".join(_lines(found)))
    if status != http.HTTPStatus.OK:
        raise typer.Exit(Exit.PROBLEM)


def _place(probes: "ProbesSettings") -> tuple[str, int]:
    from chokaq.config.errors import ConfigError, Problem

    if probes.port is None:
        raise ConfigError([Problem("probes.port", "is not set: a worker with these settings answers no probes")])
    if probes.port == 0:
        raise ConfigError([Problem("probes.port", "is 0, a free one that only the log names: say which with --port")])
    return probes.host, probes.port


def _reachable(host: str) -> str:
    """Where to ask somebody who listens at that address: every address of a host includes this one."""
    return {"0.0.0.0": "127.0.0.1", "::": "localhost"}.get(host, host)


def _ask(host: str, port: int, path: str, timeout: float) -> tuple[int, dict[str, Any]]:
    """Status and document of the answer; without one: 0, and what happened."""
    import orjson

    try:
        with closing(http.client.HTTPConnection(host, port, timeout=timeout)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            found = orjson.loads(answer.read(LARGEST))
    except (OSError, http.client.HTTPException, ValueError) as error:
        what = "it did not answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return 0, {"status": "unreachable", "error": f"{host}:{port}{path}: {what}"}
    if not isinstance(found, dict):
        return 0, {"status": "unreachable", "error": f"{host}:{port}{path}: this is no worker of chokaq"}
    return answer.status, found


def _lines(found: dict[str, Any]) -> list[str]:
    """For people: the verdict, then a line for each check, and one for each part of it that is not well."""
    lines = [f"{found.get('status', 'unknown')}{': ' + found['error'] if 'error' in found else ''}"]
    checks = found.get("checks", {})
    width = max(map(len, checks), default=0)
    for name, check in checks.items():
        lines.append(f"  {name:<{width}}  {check['status']:<9}  {check['says']}")
        lines += [
            f"  {'':<{width}}  {part['status']:<9}    {who}: {part['says']}"
            for who, part in check.get("parts", {}).items()
            if part["status"] != "healthy"
        ]
    return lines
