"""`parallelrun job archive|restore|delete`"""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat
from parallelrun.cli.server import Token, Url, connect


def archive(job_id: JobId, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
    """Hide a job from lists. It stays; `job list --archived` shows it."""
    from parallelrun.cli.output import show_change

    with connect(url, token) as client:
        archived = client.jobs.archive(job_id)
    show_change(archived, form, name=archived.id, text=f"{archived.id} archived")


def restore(job_id: JobId, form: FormatOption = OutputFormat.TABLE, url: Url = "", token: Token = "") -> None:
    """Take back that a job was archived or deleted.

    A deleted job can be restored for a day, or as long as the operator has set.
    """
    from parallelrun.cli.output import show_change

    with connect(url, token) as client:
        restored = client.jobs.restore(job_id)
    show_change(restored, form, name=restored.id, text=f"{restored.id} restored")


def delete(
    job_ids: Annotated[list[str], typer.Argument(metavar="JOB...", help="The ids of the jobs.", show_default=False)],
    *,
    url: Url = "",
    token: Token = "",
) -> None:
    """Delete jobs that have ended. Their outputs, results and reports go.

    A pipeline goes with the jobs of its steps. What something refers to can't be deleted: a job that resumes from it or
    reads its outputs, an asset, a schedule.
    """
    from parallelrun.cli.output import say

    with connect(url, token) as client:
        for job_id in job_ids:
            client.jobs.delete(job_id)
            print(f"{job_id} deleted", flush=True)
    say("restore it within a day:  parallelrun job restore ID")
