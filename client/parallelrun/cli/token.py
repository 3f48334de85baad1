"""`parallelrun token …`"""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.definitions import add_delete, add_list
from parallelrun.cli.output import FormatOption, OutputFormat, say, show_change
from parallelrun.cli.server import Client, Commands

token = Commands(lambda client: client.tokens, help="Tokens of the people and services that use a server.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


@token.command()
def create(
    client: Client,
    name: Name,
    *,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            help="read: see; submit: also submit jobs and change one's own things; admin: also change everybody's, "
            "define computes, and make tokens. Can be repeated.",
            show_default="submit",
        ),
    ] = None,
    days: Annotated[float, typer.Option(help="Days for which it is valid; 0: until it is revoked.")] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="In place of the token of this name, which is not valid any more then.")
    ] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Make a token, and print it. It is shown this once: the server stores a hash of it."""
    created = client.tokens.create(name, scopes=scopes or ["submit"], days=days, replace=replace)
    show_change(created, form, name=created.token)
    say(f"{created.name} may {', '.join(created.scopes)}{f' until {created.expires}' if created.expires else ''}")
    say("whoever has it sets PARALLELRUN_URL and PARALLELRUN_TOKEN; nobody can show it again")


add_list(
    token,
    "List all tokens that the server has made, without their texts.",
    [
        "name",
        ("SCOPES", lambda each: ",".join(each.scopes)),
        "created",
        ("BY", lambda each: each.created_by),
        ("EXPIRES", lambda each: each.expires if each.is_valid else f"{each.expires} (expired)"),
    ],
)
add_delete(
    token,
    "Let nobody in with this token any more. What was made with it stays.",
    verb="revoke",
)
