"""Groups of options: declared once, taken by many commands."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from chokaq.cli.spread import Spread, spread

NameOption = Annotated[str | None, typer.Option("--name", help="A name.")]
TimesOption = Annotated[int, typer.Option("--times", help="How often.")]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is wished."""

    name: NameOption = None
    times: TimesOption = 1


def loud(shout: Annotated[bool, typer.Option("--loud")] = False) -> str:
    """A tone."""
    return "!" if shout else "."


def test_a_command_takes_the_options_of_its_groups_and_gets_what_they_make() -> None:
    got: list[tuple[str, Wish, str]] = []

    def command(
        word: Annotated[str, typer.Argument()],
        *,
        wish: Annotated[Wish, Spread(Wish)],
        tone: Annotated[str, Spread(loud)],
    ) -> None:
        """Wish."""
        got.append((word, wish, tone))

    program = typer.Typer()
    program.command()(spread(command))
    runner = CliRunner()
    assert runner.invoke(program, ["hello", "--times", "3", "--loud"]).exit_code == 0
    assert runner.invoke(program, ["bye", "--name", "anna"]).exit_code == 0
    assert got == [("hello", Wish(times=3), "!"), ("bye", Wish(name="anna"), ".")]
    assert runner.invoke(program, ["x", "--wish", "y"]).exit_code == 2
    assert "A name." in runner.invoke(program, ["--help"]).output
    assert list(inspect.signature(spread(command)).parameters) == ["word", "name", "times", "shout"]
