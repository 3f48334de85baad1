"""`parallelrun job pause|prioritize`"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat
from parallelrun.cli.server import Token, Url, connect

_PRIORITIES: Final = ("low", "normal", "high", "urgent")


def pause(job_id: JobId, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
    """Begin nothing more of a job until `job resume`. What runs ends and counts."""
    from parallelrun.cli.output import show_change

    with connect(url, token) as client:
        paused = client.jobs.pause(job_id)
    show_change(paused, form, name=paused.id, text=f"{paused.id} paused")


def prioritize(
    job_id: JobId,
    priority: Annotated[
        str, typer.Argument(metavar="PRIORITY", help=f"{', '.join(_PRIORITIES)}.", autocompletion=one_of(*_PRIORITIES))
    ],
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Change a job's priority, while it waits or runs. Only admins make one urgent."""
    from parallelrun.cli.output import show_change

    if priority not in _PRIORITIES:
        raise typer.BadParameter(f"{priority!r} is none of {', '.join(_PRIORITIES)}", param_hint="PRIORITY")
    with connect(url, token) as client:
        changed = client.jobs.prioritize(job_id, priority)
    show_change(changed, form, name=changed.id, text=f"{changed.id} {changed.priority}")
