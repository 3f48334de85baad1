"""`parallelrun compute …`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.output import Format, FormatOption
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    from parallelrun.models import Compute

compute = typer.Typer(
    help="Named pools of nodes, and the engines that provide them.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


@compute.command()
def create(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The definition, as YAML or JSON.", show_default=False)],
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Define a compute, or define it anew, and print its name."""
    from parallelrun.cli.output import say, show_change

    with connect(url, token) as client:
        defined = client.computes.create(file)
    show_change(defined, form, name=defined.name)
    say(f"{_range(defined)} of type {defined.type}; a job selects it with `compute: {defined.name}`")


@compute.command("list")
def list_computes(form: FormatOption = Format.TABLE, url: Url = "", token: Token = "") -> None:
    """List all computes."""
    from parallelrun.cli.output import show_list

    with connect(url, token) as client:
        show_list(
            client.computes.list(),
            form,
            name=lambda each: each.name,
            columns=[
                ("NAME", lambda each: each.name),
                ("TYPE", lambda each: each.type),
                ("NODES", _range),
                ("DEFAULT", lambda each: "yes" if each.is_default else ""),
            ],
        )


@compute.command()
def show(name: Name, form: FormatOption = Format.TABLE, url: Url = "", token: Token = "") -> None:
    """Show one compute."""
    from parallelrun.cli.output import show_one

    with connect(url, token) as client:
        shown = client.computes.get(name)
    lines: list[tuple[str, object]] = [("name", shown.name), ("type", shown.type), ("nodes", _range(shown))]
    lines += [(field, value) for field, value in shown.definition.items() if field not in _SHOWN]
    show_one(shown, form, name=shown.name, lines=lines)


@compute.command()
def update(
    name: Name,
    assignments: Annotated[
        list[str], typer.Option("--set", metavar="FIELD=VALUE", help="A field of its definition.", show_default=False)
    ],
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Change a compute. What its engine had refused is tried again at once."""
    from parallelrun.cli.output import show_change
    from parallelrun_core.spec.document import set_field

    with connect(url, token) as client:
        definition = dict(client.computes.get(name).definition)
        for assignment in assignments:
            set_field(definition, assignment)
        changed = client.computes.create(definition)
    show_change(changed, form, name=changed.name, text=f"{changed.name}: {_range(changed)}")


@compute.command()
def delete(name: Name, url: Url = "", token: Token = "") -> None:
    """Forget a compute. Its nodes are drained and given back."""
    with connect(url, token) as client:
        client.computes.delete(name)


_SHOWN = ("name", "type", "min_instances", "max_instances")


def _range(compute: Compute) -> str:
    return f"{compute.min_instances} to {compute.max_instances} nodes"
