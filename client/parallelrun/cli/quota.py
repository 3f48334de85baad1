"""`parallelrun quota …`"""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.definitions import add_list
from parallelrun.cli.output import FormatOption, OutputFormat
from parallelrun.cli.server import Token, Url, connect

quota = typer.Typer(help="Quotas of the people who use a server.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="An owner, or everybody.", show_default=False)]


@quota.command("set")
def set_quota(
    name: Name,
    *,
    jobs: Annotated[
        int | None, typer.Option(min=0, help="Jobs that have not ended.", show_default="any number")
    ] = None,
    submissions_per_minute: Annotated[
        int | None, typer.Option(min=0, help="Jobs that are accepted in a minute.", show_default="any number")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=0, help="Workers at the same time.", show_default="any number")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=0, help="Nodes with workers at the same time.", show_default="any number")
    ] = None,
    job_bytes: Annotated[
        int | None, typer.Option(min=0, help="Bytes of the folders of jobs.", show_default="any number")
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Set a quota. Of a person, or of everybody who has none of their own. What isn't named is not limited any more."""
    from parallelrun.cli.output import show_change

    with connect(url, token) as client:
        defined = client.quotas.set(
            name,
            jobs=jobs,
            submissions_per_minute=submissions_per_minute,
            slots=slots,
            nodes=nodes,
            job_bytes=job_bytes,
        )
    show_change(defined, form, name=defined.name)


add_list(
    quota,
    "List all quotas.",
    lambda client: client.quotas.list(),
    [
        ("NAME", lambda each: each.name),
        ("JOBS", lambda each: each.jobs),
        ("SUBMISSIONS PER MINUTE", lambda each: each.submissions_per_minute),
        ("SLOTS", lambda each: each.slots),
        ("NODES", lambda each: each.nodes),
        ("JOB BYTES", lambda each: each.job_bytes),
    ],
)


@quota.command()
def remove(name: Name, url: Url = "", token: Token = "") -> None:
    """Forget a quota. That of everybody holds then, if there is one."""
    with connect(url, token) as client:
        client.quotas.remove(name)
