"""Commands that are the same for all that users define by a name: they are declared, by what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from parallelrun.cli.output import Column, FormatOption, OutputFormat, say, show_change, show_list, show_one
from parallelrun.cli.server import Commands, Target

Completion = Callable[[typer.Context, str], Iterable[tuple[str, str]]]
DefinitionFile: Any = typer.Option(..., "--file", "-f", help="The definition, as YAML or JSON.", show_default=False)


def add_create(group: Commands, text: str, result: Callable[[Any, Target[Any]], str]) -> None:
    """Add `create`.

    Args:
        text: its help.
        result: what follows from the definition, in a sentence.
    """

    @group.command("create", help=text)
    def command(target: Target[Any], *, file: Path = DefinitionFile, form: FormatOption = OutputFormat.TABLE) -> None:
        defined = target.resources.create(file)
        show_change(defined, form, name=defined.name)
        say(result(defined, target))


def add_list(group: Commands, text: str, columns: Sequence[Column]) -> None:
    """Add `list`.

    Args:
        text: its help.
        columns: those of its table.
    """

    @group.command("list", help=text)
    def command(target: Target[Any], form: FormatOption = OutputFormat.TABLE) -> None:
        show_list(target.resources.list(), form, columns=columns)


def add_show(
    group: Commands,
    text: str,
    lines: Callable[[Any], Sequence[tuple[str, object]]],
    complete: Completion | None = None,
) -> None:
    """Add `show`.

    Args:
        text: its help.
        lines: title and content of each line.
        complete: completes names.
    """
    argument: Any = _name(complete)

    @group.command("show", help=text)
    def command(target: Target[Any], name: str = argument, form: FormatOption = OutputFormat.TABLE) -> None:
        definition = target.resources.get(name)
        show_one(definition, form, name=definition.name, lines=lines(definition))


def add_delete(group: Commands, text: str, complete: Completion | None = None, *, verb: str = "delete") -> None:
    """Add `delete`, or what it is called there.

    Args:
        text: its help.
        complete: completes names.
    """
    argument: Any = _name(complete)

    @group.command(verb, help=text)
    def command(target: Target[Any], name: str = argument) -> None:
        getattr(target.resources, verb)(name)


def _name(complete: Completion | None) -> Any:
    return typer.Argument(..., metavar="NAME", show_default=False, autocompletion=complete)
