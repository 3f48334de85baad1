"""Commands that are the same for all that users define by a name: they are declared, by what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from parallelrun.cli.output import Column, FormatOption, OutputFormat, say, show_change, show_list, show_one
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    import msgspec

    from parallelrun.client import Client

Completion = Callable[[typer.Context, str], Iterable[tuple[str, str]]]


def command_group(text: str) -> typer.Typer:
    """A group of commands, such as those of all jobs, with its help."""
    return typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)


def add_create(
    group: typer.Typer,
    text: str,
    create: Callable[[Client, Path], Any],
    result: Callable[[Any], str],
) -> None:
    """Add `create`.

    Args:
        text: its help.
        create: defines what a file says.
        result: what follows from the definition, in a sentence.
    """
    option: Any = typer.Option(..., "--file", "-f", help="The definition, as YAML or JSON.", show_default=False)

    @group.command("create", help=text)
    def command(
        *, file: Path = option, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = ""
    ) -> None:
        with connect(url, token) as client:
            defined = create(client, file)
        show_change(defined, form, name=defined.name)
        say(result(defined))


def add_list(
    group: typer.Typer,
    text: str,
    rows: Callable[[Client], Iterable[msgspec.Struct]],
    columns: Sequence[Column],
) -> None:
    """Add `list`.

    Args:
        text: its help.
        rows: what it lists, each with a `name`.
        columns: those of its table.
    """

    @group.command("list", help=text)
    def command(form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
        with connect(url, token) as client:
            show_list(rows(client), form, columns=columns)


def add_show(
    group: typer.Typer,
    text: str,
    get: Callable[[Client, str], Any],
    lines: Callable[[Any], Sequence[tuple[str, object]]],
    complete: Completion | None = None,
) -> None:
    """Add `show`.

    Args:
        text: its help.
        get: what is shown, by its name.
        lines: title and content of each line.
        complete: completes names.
    """
    argument: Any = _name(complete)

    @group.command("show", help=text)
    def command(
        name: str = argument, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = ""
    ) -> None:
        with connect(url, token) as client:
            definition = get(client, name)
        show_one(definition, form, name=definition.name, lines=lines(definition))


def add_delete(
    group: typer.Typer,
    text: str,
    delete: Callable[[Client, str], None],
    complete: Completion | None = None,
    *,
    verb: str = "delete",
) -> None:
    """Add `delete`, or what it is called.

    Args:
        text: its help.
        delete: deletes what has a name.
        complete: completes names.
    """
    argument: Any = _name(complete)

    @group.command(verb, help=text)
    def command(name: str = argument, url: Url = "", token: Token = "") -> None:
        with connect(url, token) as client:
            delete(client, name)


def _name(complete: Completion | None) -> Any:
    return typer.Argument(..., metavar="NAME", show_default=False, autocompletion=complete)
