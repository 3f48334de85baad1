"""`parallelrun node …`"""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.each import RefusedNames
from parallelrun.cli.output import FormatOption, OutputFormat, say, show_list
from parallelrun.cli.server import Client, Commands

node = Commands(help="The nodes of a cluster.")


@node.command("list")
def list_nodes(client: Client, form: FormatOption = OutputFormat.TABLE) -> None:
    """List all nodes."""
    show_list(
        client.nodes.list(),
        form,
        name=lambda each: each.node,
        columns=[
            "node",
            "state",
            ("BUSY", lambda each: f"{each.busy}/{each.slots}"),
            "host",
            "version",
            ("JOBS", lambda each: " ".join(each.jobs)),
        ],
    )


@node.command()
def drain(client: Client, names: Annotated[list[str], typer.Argument(metavar="NODE...", show_default=False)]) -> None:
    """Let nodes finish what they run, then end. What they have not begun goes back to the queue."""
    from parallelrun_core.figures import counted

    refusals = RefusedNames(names)
    for name in refusals.names:
        with refusals.of(name):
            drained = client.nodes.drain(name)
            say(f"{drained.node} finishes what it runs with {counted(drained.busy, 'worker')}, and leaves")
    refusals.exit()
