"""`parallelrun job tag|archive|restore|delete`: the tags of a job, and whether it is listed, or there at all."""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.each import RefusedNames, change_each
from parallelrun.cli.job_files import JobId, JobIds
from parallelrun.cli.output import FormatOption, OutputFormat, say, show_change
from parallelrun.cli.server import Client


def tag(
    client: Client,
    job_id: JobId,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Tags to set.", show_default=False)
    ] = None,
    *,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A tag to remove. Repeat it for more.", show_default=False)
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Set and remove tags of a job, also of one that has ended. Those that aren't named stay."""
    if not tags and not remove:
        raise typer.BadParameter("name a tag to set, as team=vision, or one to --remove", param_hint="NAME=VALUE")
    parts = [each.partition("=") for each in tags or []]
    tagged = client.jobs.tag(job_id, {name: value for name, _, value in parts}, remove=remove or ())
    text = " ".join(f"{name}={value}" if value else name for name, value in tagged.tags.items())
    show_change(tagged, form, name=tagged.id, text=f"{tagged.id} {text or 'has no tags'}")


def archive(client: Client, job_ids: JobIds, form: FormatOption = OutputFormat.TABLE) -> None:
    """Hide jobs from lists. They stay; `job list --archived` shows them."""
    change_each(job_ids, client.jobs.archive, form, lambda archived: f"{archived.id} archived")


def restore(client: Client, job_ids: JobIds, form: FormatOption = OutputFormat.TABLE) -> None:
    """Take back that jobs were archived or deleted.

    A deleted job can be restored for a day, or as long as the operator has set.
    """
    change_each(job_ids, client.jobs.restore, form, lambda restored: f"{restored.id} restored")


def delete(client: Client, job_ids: JobIds) -> None:
    """Delete jobs that have ended. Their outputs, results and reports go.

    A pipeline goes with the jobs of its steps. What something refers to can't be deleted: a job that resumes from it or
    reads its outputs, an asset, a schedule.
    """
    refusals = RefusedNames(job_ids)
    for job_id in refusals.names:
        with refusals.of(job_id):
            client.jobs.delete(job_id)
            print(f"{job_id} deleted", flush=True)
    refusals.exit()
    say("restore it within a day:  parallelrun job restore ID")
