"""`parallelrun datastore …`"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli import completion
from parallelrun.cli.definitions import command_group
from parallelrun.cli.output import FormatOption, OutputFormat, say, show_change, show_list, show_one
from parallelrun.cli.server import Local, Token, Url, local_or_remote

if TYPE_CHECKING:
    from parallelrun.embedded.datastores import OwnDatastores
    from parallelrun.resources.datastores import Datastores

datastore = command_group(
    "Named places in object stores. Those of a server; without one, of `parallelrun run` on this machine."
)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=completion.datastores)]


@datastore.command()
def create(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The definition, as YAML or JSON.", show_default=False)],
    form: FormatOption = OutputFormat.TABLE,
    local: Local = False,
    url: Url = "",
    token: Token = "",
) -> None:
    """Define a datastore, or define it anew, and print its name."""
    with _datastores(url, token, local=local) as (place, where):
        defined = place.create(file)
    show_change(defined, form, name=defined.name)
    say(f"{defined.location}, {where}")
    say(f"name what is in it as azureml://datastores/{defined.name}/paths/PATH")


@datastore.command("list")
def list_datastores(
    form: FormatOption = OutputFormat.TABLE, local: Local = False, url: Url = "", token: Token = ""
) -> None:
    """List all datastores."""
    with _datastores(url, token, local=local) as (place, _):
        show_list(
            place.list(),
            form,
            columns=["name", "type", "location", ("CREDENTIALS", lambda each: each.access)],
        )


@datastore.command()
def show(
    name: Name, form: FormatOption = OutputFormat.TABLE, local: Local = False, url: Url = "", token: Token = ""
) -> None:
    """Show one datastore."""
    with _datastores(url, token, local=local) as (place, _):
        definition = place.get(name)
    lines = [
        ("name", definition.name),
        ("type", definition.type),
        ("location", definition.location),
        ("credentials", definition.access),
    ]
    show_one(definition, form, name=definition.name, lines=[*lines, *_details(definition.definition)])


@datastore.command()
def delete(name: Name, local: Local = False, url: Url = "", token: Token = "") -> None:
    """Forget a datastore. What is in the store stays."""
    with _datastores(url, token, local=local) as (place, _):
        place.delete(name)


def _details(definition: dict[str, object]) -> Iterator[tuple[str, object]]:
    for field, value in definition.items():
        if field == "credentials" and isinstance(value, dict):
            yield "secret", f"the file datastores/{value.get('secret')} in the folder of secrets of each node"
        elif field not in ("name", "type"):
            yield field, value


def _datastores(url: str, token: str, *, local: bool) -> AbstractContextManager[tuple[Datastores | OwnDatastores, str]]:
    """Return the datastores that are meant, and where they are."""
    from parallelrun.embedded.datastores import OwnDatastores

    return local_or_remote(url, token, local=local, here=OwnDatastores, remote=lambda client: client.datastores)
