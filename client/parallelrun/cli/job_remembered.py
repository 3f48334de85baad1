"""`parallelrun job remembered|forget`: what the entry script of a job keeps for later tries, with `remember()`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, LimitOption, OutputFormat, show_change, show_list
from parallelrun.cli.server import Client


def remembered(
    client: Client,
    job_id: JobId,
    *,
    text: Annotated[str, typer.Option(metavar="TEXT", help="Only keys with this in them.")] = "",
    limit: LimitOption = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show the answers that `remember()` has kept. Also while the job runs."""
    show_list(
        islice(client.jobs.remembered(job_id, text=text), limit),
        form,
        name=lambda each: each.key,
        columns=["key", "bytes", ("VALUE", lambda each: each.value_begin), "log"],
    )


def forget(
    client: Client,
    job_id: JobId,
    *,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Delete what is under this key.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete what is under all keys.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Delete answers that the script of a job has remembered. The job must have ended.

    When it is resumed, it asks for them again. What other jobs have taken over stays with them.
    """
    from parallelrun_core.figures import counted

    if everything == (key is not None):
        raise typer.BadParameter("name the --key of an answer, or --all", param_hint="--key")
    forgotten = client.jobs.forget(job_id, key)
    text = f"{counted(forgotten.count, 'answer')} deleted, {forgotten.bytes:,} bytes"
    show_change(forgotten, form, name=job_id, text=f"{job_id}: {text}")
