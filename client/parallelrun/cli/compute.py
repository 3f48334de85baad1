"""`parallelrun compute …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.definitions import add_create, add_delete, add_list, add_show
from parallelrun.cli.exit_codes import ExitCode
from parallelrun.cli.output import FormatOption, OutputFormat, say, show_change
from parallelrun.cli.server import Client, Commands

if TYPE_CHECKING:
    from parallelrun.models import Compute

compute = Commands(lambda client: client.computes, help="Named pools of nodes, and the engines that provide them.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


_SHOWN = ("name", "type", "min_instances", "max_instances")


def _standing(compute: Compute) -> list[tuple[str, object]]:
    """Return how it stands, line by line."""
    from parallelrun_core.computes.kinds import MANUAL

    status = compute.status
    if status is None and compute.type == MANUAL:
        return [("status", f"people start its nodes: parallelrun-agent --compute {compute.name}")]
    if status is None:
        return [("status", "no provisioner has said anything of it")]
    lines: list[tuple[str, object]] = [("nodes", _nodes(compute)), ("as of", status.at), ("why", status.why)]
    if status.next_attempt:
        lines.append(("next attempt", status.next_attempt))
    lines += [("cost", f"{compute.cost_per_hour:,.2f} an hour")] if compute.cost_per_hour else []
    lines += [("node", f"{each.node} {each.stage} since {each.since} {each.words}".rstrip()) for each in status.nodes]
    return lines


def _nodes(compute: Compute) -> str:
    """Return how many nodes there are, and how many jobs and limits ask for."""
    status = compute.status
    if status is None:
        return ""
    rest = [
        f"{count} {label}" for count, label in ((status.launching, "launching"), (status.leaving, "leaving")) if count
    ]
    return ", ".join([f"{status.ready} ready", *rest, f"{status.wanted} wanted"])


def _range(compute: Compute) -> str:
    return f"{compute.min_instances} to {compute.max_instances} nodes"


def _lines(compute: Compute) -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [("name", compute.name), ("type", compute.type), ("limits", _range(compute))]
    lines += [(field, value) for field, value in compute.definition.items() if field not in _SHOWN]
    return [*lines, *_standing(compute)]


add_create(
    compute,
    "Define a compute, or define it anew, and print its name.",
    lambda defined, _: f"{_range(defined)} of type {defined.type}; a job selects it with `compute: {defined.name}`",
)


add_list(
    compute,
    "List all computes.",
    ["name", "type", ("LIMITS", _range), ("NODES", _nodes), ("DEFAULT", lambda each: "yes" if each.is_default else "")],
)


add_show(
    compute,
    "Show one compute. With its nodes, what they wait for, and what its engine said.",
    _lines,
)


@compute.command()
def plan(
    client: Client,
    name: Name,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Of a node of this image, which a job has named.", show_default=False)
    ] = "",
) -> None:
    """Print exactly what its engine is sent for a node."""
    status = client.computes.get(name).status
    if status is None:
        say(f"no provisioner has said anything of {name}: is parallelrun-provisioner running, and its kind not manual?")
        raise typer.Exit(ExitCode.JOB_FAILED)
    if image and image not in status.plans:
        named = f"; by image: {', '.join(sorted(status.plans))}" if status.plans else ""
        say(f"no job on {name} that needs nodes names the image {image}, and no node is of it{named}")
        raise typer.Exit(ExitCode.JOB_FAILED)
    planned = status.plans[image] if image else status.plan
    if not planned:
        say(status.why or "nothing is known of it yet")
        raise typer.Exit(ExitCode.JOB_FAILED)
    print(planned.rstrip("\n"))


@compute.command()
def update(
    client: Client,
    name: Name,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field. Can be repeated.", show_default=False),
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Change a compute. What its engine has refused is tried again at once.

    Without --set, nothing is changed, but tried again all the same.
    """
    from parallelrun_core.untrusted.assignment import set_field

    definition = dict(client.computes.get(name).definition)
    for assignment in assignments or ():
        set_field(definition, assignment)
    changed = client.computes.create(definition)
    show_change(changed, form, name=changed.name, text=f"{changed.name}: {_range(changed)}")


add_delete(compute, "Forget a compute. Its nodes are drained and given back.")
