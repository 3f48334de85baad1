"""`parallelrun job tag|archive|restore|delete`, and `remembered|forget`: what entry scripts keep for later tries."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from parallelrun.cli.each import RefusedNames, change_each
from parallelrun.cli.job_files import JobId, JobIds
from parallelrun.cli.output import FormatOption, LimitOption, OutputFormat, say, show_change, show_list
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
