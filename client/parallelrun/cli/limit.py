"""`parallelrun limit …`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli import completion
from parallelrun.cli.output import FormatOption, OutputFormat
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    from parallelrun.models import RateLimit

limit = typer.Typer(
    help="Limits on calls of services, for all jobs together.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=completion.limits)]


@limit.command()
def create(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The definition, as YAML or JSON.", show_default=False)],
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Define a limit, or define it anew, and print its name."""
    from parallelrun.cli.output import say, show_change

    with connect(url, token) as client:
        defined = client.limits.create(file)
    show_change(defined, form, name=defined.name)
    say(f"jobs that name it in rate_limits keep to it: rate_limits: [{defined.name}]")


@limit.command("list")
def list_limits(form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
    """List all limits."""
    from parallelrun.cli.output import show_list

    with connect(url, token) as client:
        show_list(
            client.limits.list(),
            form,
            name=lambda each: each.name,
            columns=[
                ("NAME", lambda each: each.name),
                ("REQUESTS/MIN", lambda each: _number(each.requests_per_minute)),
                ("TOKENS/MIN", lambda each: _number(each.tokens_per_minute)),
                ("IN FLIGHT", lambda each: _number(each.in_flight)),
            ],
        )


@limit.command()
def show(name: Name, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
    """Show one limit."""
    from parallelrun.cli.output import show_one

    with connect(url, token) as client:
        definition = client.limits.get(name)
    show_one(definition, form, name=definition.name, lines=_lines(definition))


@limit.command()
def delete(name: Name, url: Url = "", token: Token = "") -> None:
    """Forget a limit. Calls that wait for it are refused."""
    with connect(url, token) as client:
        client.limits.delete(name)


def _lines(definition: RateLimit) -> list[tuple[str, object]]:
    return [
        ("name", definition.name),
        ("requests per minute", _number(definition.requests_per_minute)),
        ("tokens per minute", _number(definition.tokens_per_minute)),
        ("in flight", _number(definition.in_flight)),
    ]


def _number(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"
