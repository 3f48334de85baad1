"""`parallelrun job pause|prioritize|cancel|resume|retry`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.exit_codes import StrictOption
from parallelrun.cli.job_files import JobId
from parallelrun.cli.job_follow import follow_job
from parallelrun.cli.output import FormatOption, OutputFormat
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    from parallelrun.models import Job

_PRIORITIES: Final = ("low", "normal", "high", "urgent")

AcceptChanged = Annotated[
    bool, typer.Option("--accept-changed-inputs", help="Continue even if input files have changed or are gone.")
]
FollowOption = Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")]


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


def cancel(
    job_id: JobId,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job has ended.")] = False,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Stop a job. Running work is discarded, and there will be no output."""
    from parallelrun.cli.output import show_change

    with connect(url, token) as client:
        canceled = client.jobs.cancel(job_id)
        if wait:
            canceled = client.jobs.wait(job_id, raise_on_failure=False)
    show_change(canceled, form, name=canceled.id, text=f"{canceled.id} {canceled.state}")


def resume(
    job_id: JobId,
    *,
    accept_changed_inputs: AcceptChanged = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", help="The job's budget from now on, what it has spent included."),
    ] = None,
    follow: FollowOption = False,
    strict: StrictOption = False,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Continue a job that has failed, was canceled or is paused. Its mini-batches that have no result yet are run.

    It runs the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    with connect(url, token) as client:
        reopened = client.jobs.resume(job_id, accept_changed_inputs=accept_changed_inputs, budget_usd=budget)
        _show_reopened(reopened, form)
        if follow:
            raise typer.Exit(follow_job(client, reopened, strict=strict))


def retry(
    job_id: JobId,
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
    url: Url = "",
    token: Token = "",
) -> None:
    """Run failed mini-batches and items of a job again. The output keeps its name.

    It runs the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    try:
        numbers = [int(number) for number in mini_batches.split(",")] if mini_batches else None
    except ValueError as error:
        raise typer.BadParameter(f"{mini_batches!r} is not a list of numbers such as 4,9") from error
    with connect(url, token) as client:
        reopened = client.jobs.retry(job_id, mini_batches=numbers, accept_changed_inputs=accept_changed_inputs)
        _show_reopened(reopened, form)
        if follow:
            raise typer.Exit(follow_job(client, reopened, strict=strict))


def _show_reopened(reopened: Job, form: OutputFormat) -> None:
    from parallelrun.cli.output import say, show_change

    show_change(reopened, form, name=reopened.id, text=f"{reopened.id} {reopened.state}")
    if reopened.state not in ("queued", "failed", "canceled"):  # it was only paused
        return
    say(f"it runs the code as submitted on {reopened.submitted}; to run changed code, create a new job with")
    say(f"  parallelrun job create -f JOB.yml --resume-from {reopened.id}")
