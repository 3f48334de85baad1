"""`parallelrun quota …` and `parallelrun usage`"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from parallelrun.cli.definitions import add_list
from parallelrun.cli.output import FormatOption, OutputFormat, show_change, show_csv, show_list
from parallelrun.cli.server import Client, Commands

if TYPE_CHECKING:
    from parallelrun.models import Quota

quota = Commands(lambda client: client.quotas, help="Quotas of the people who use a server.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="An owner, or everybody.", show_default=False)]


_NONE: Final = "none"


def _limit(text: str) -> int | str:
    if text == _NONE:
        return text
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text!r} is neither a whole number nor {_NONE!r}")
    return int(text)


def _option(text: str) -> Any:
    return typer.Option(help=text, parser=_limit, metavar=f"<number|{_NONE}>", show_default=False)


@quota.command("set")
def set_quota(
    client: Client,
    name: Name,
    *,
    jobs: Annotated[Any, _option("Jobs that have not ended.")] = None,
    submissions_per_minute: Annotated[Any, _option("Jobs that are accepted in a minute.")] = None,
    slots: Annotated[Any, _option("Workers at the same time.")] = None,
    nodes: Annotated[Any, _option("Nodes with workers at the same time.")] = None,
    job_bytes: Annotated[Any, _option("Bytes of the folders of jobs that have ended.")] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Set limits of a person, or of all without a quota of their own.

    What isn't named stays as it is; `none` is no limit any more.
    """
    options = {
        "jobs": jobs,
        "submissions_per_minute": submissions_per_minute,
        "slots": slots,
        "nodes": nodes,
        "job_bytes": job_bytes,
    }
    limits = {field: None if limit == _NONE else limit for field, limit in options.items() if limit is not None}
    if not limits:
        raise typer.BadParameter("name a limit, such as --jobs 20")
    quota_now = client.quotas.set(name, **limits)
    show_change(quota_now, form, name=name, text=f"{name}: {_in_words(quota_now)}")


def _in_words(limits: Quota) -> str:
    """Return what somebody may have, in one line."""
    from parallelrun_core.figures import counted

    parts = (
        (limits.jobs, "job", ""),
        (limits.submissions_per_minute, "submission per minute", "submissions per minute"),
        (limits.slots, "slot", ""),
        (limits.nodes, "node", ""),
        (limits.job_bytes, "byte of jobs", "bytes of jobs"),
    )
    return ", ".join(counted(most, one, many) for most, one, many in parts if most is not None) or "no limit"


add_list(
    quota,
    "List all quotas.",
    ["name", "jobs", "submissions_per_minute", "slots", "nodes", "job_bytes"],
)


@quota.command()
def remove(client: Client, name: Name) -> None:
    """Forget a quota. That of everybody holds then, if there is one."""
    client.quotas.remove(name)


def usage(
    client: Client,
    *,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show who has used the cluster and how much. Hours of slots and GPUs by week and person, and what they cost."""
    weeks = client.usage.list()
    if as_csv:
        columns = ("week", "owner", "slot_hours", "gpu_hours", "cost", "job_bytes", "week_bytes")
        show_csv(columns, map(attrgetter(*columns), weeks), form)
        return
    show_list(
        weeks,
        form,
        name=lambda each: f"{each.week} {each.owner}",
        columns=[
            "week",
            "owner",
            ("SLOT HOURS", lambda each: f"{each.slot_hours:,.2f}"),
            ("GPU HOURS", lambda each: f"{each.gpu_hours:,.2f}"),
            ("JOB BYTES", lambda each: "" if each.job_bytes is None else f"{each.job_bytes:,}"),
            ("OF THE WEEK", lambda each: f"{each.week_bytes:,}"),
            ("COST", lambda each: f"{each.cost:,.2f}"),
        ],
    )
