"""`parallelrun job pause|prioritize|cancel|resume|retry`"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.each import change_each
from parallelrun.cli.exit_codes import StrictOption
from parallelrun.cli.job_files import JobIds
from parallelrun.cli.job_follow import check_strict, follow_job
from parallelrun.cli.output import FormatOption, OutputFormat, say
from parallelrun.cli.server import Client

if TYPE_CHECKING:
    from parallelrun.models import Job

_PRIORITIES: Final = ("low", "normal", "high", "urgent")

AcceptChanged = Annotated[
    bool, typer.Option("--accept-changed-inputs", help="Continue even if input files have changed or are gone.")
]
FollowOption = Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")]


def pause(client: Client, job_ids: JobIds, form: FormatOption = OutputFormat.TABLE) -> None:
    """Begin nothing more of jobs until `job resume`. What runs ends and counts."""
    change_each(job_ids, client.jobs.pause, form, lambda paused: f"{paused.id} paused")


def prioritize(
    client: Client,
    job_ids: JobIds,
    priority: Annotated[
        str, typer.Argument(metavar="PRIORITY", help=f"{', '.join(_PRIORITIES)}.", autocompletion=one_of(*_PRIORITIES))
    ],
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Change the priority of jobs, while they wait or run. Only admins make one urgent."""
    if priority not in _PRIORITIES:
        raise typer.BadParameter(f"{priority!r} is none of {', '.join(_PRIORITIES)}", param_hint="PRIORITY")
    change_each(
        job_ids,
        lambda job_id: client.jobs.prioritize(job_id, priority),
        form,
        lambda changed: f"{changed.id} {changed.priority}",
    )


def cancel(
    client: Client,
    job_ids: JobIds,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all have ended.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Stop jobs. Running work is discarded, and there will be no output."""
    change_each(
        job_ids,
        client.jobs.cancel,
        form,
        lambda canceled: f"{canceled.id} {canceled.state}",
        wait=(lambda job_id: client.jobs.wait(job_id, raise_on_failure=False)) if wait else None,
    )


def resume(
    client: Client,
    job_ids: JobIds,
    *,
    accept_changed_inputs: AcceptChanged = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", help="The job's budget from now on, what it has spent included."),
    ] = None,
    follow: FollowOption = False,
    strict: StrictOption = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Continue jobs that have failed, were canceled or are paused. Mini-batches that have no result yet are run.

    They run the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    check_strict(strict=strict, follows=follow)
    _refuse_for_several(job_ids, stream=follow, budget=budget is not None)
    reopened = change_each(
        job_ids,
        partial(client.jobs.resume, accept_changed_inputs=accept_changed_inputs, budget_usd=budget),
        form,
        _became,
    )
    _end(client, reopened, follow=follow, strict=strict)


def retry(
    client: Client,
    job_ids: JobIds,
    *,
    # It is the only thing to retry, so the option changes nothing; `retry ID --failed` reads well.
    failed: Annotated[bool, typer.Option("--failed", hidden=True)] = True,
    mini_batches: Annotated[
        str, typer.Option("--mini-batches", metavar="4,9", help="Only these mini-batches.", show_default=False)
    ] = "",
    accept_changed_inputs: AcceptChanged = False,
    follow: FollowOption = False,
    strict: StrictOption = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Run failed mini-batches and items of jobs again. Each output keeps its name.

    They run the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    try:
        numbers = [int(number) for number in mini_batches.split(",")] if mini_batches else None
    except ValueError as error:
        raise typer.BadParameter(f"{mini_batches!r} is not a list of numbers such as 4,9") from error
    check_strict(strict=strict, follows=follow)
    _refuse_for_several(job_ids, stream=follow, mini_batches=numbers is not None)
    reopened = change_each(
        job_ids,
        partial(client.jobs.retry, mini_batches=numbers, accept_changed_inputs=accept_changed_inputs),
        form,
        _became,
    )
    _end(client, reopened, follow=follow, strict=strict)


def _refuse_for_several(job_ids: list[str], **options: bool) -> None:
    for name, is_given in options.items():
        if is_given and len(job_ids) > 1:
            raise typer.BadParameter(
                "it is for one job, and several are named", param_hint=f"--{name.replace('_', '-')}"
            )


def _became(job: Job) -> str:
    return f"{job.id} {job.state}"


def _end(client: Client, reopened: list[Job], *, follow: bool, strict: bool) -> None:
    """Say which code runs, of what was more than paused, and follow a job to its end."""
    for job in reopened:
        if job.state in ("queued", "failed", "canceled"):
            say(f"{job.id} runs the code as submitted on {job.submitted}; to run changed code, create a new job with")
            say(f"  parallelrun job create -f JOB.yml --resume-from {job.id}")
    if follow:
        raise typer.Exit(follow_job(client, reopened[0], strict=strict))
