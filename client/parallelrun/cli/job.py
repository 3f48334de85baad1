"""`parallelrun job …`: jobs of a server."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.advise import advise
from parallelrun.cli.completion import job_states, one_of
from parallelrun.cli.exit_codes import StrictOption
from parallelrun.cli.job_control import cancel, pause, prioritize, resume, retry
from parallelrun.cli.job_file_options import Assignments, InputPlaces, read_with_options
from parallelrun.cli.job_files import JobId, download, logs
from parallelrun.cli.job_follow import follow_job, stream
from parallelrun.cli.job_insight import explain, profile, replay, report, stacks
from parallelrun.cli.job_removal import archive, delete, forget, remembered, restore, tag
from parallelrun.cli.job_show import show
from parallelrun.cli.job_views import open_page, top
from parallelrun.cli.output import FormatOption, LimitOption, OutputFormat, say, say_notes, show_change, show_list
from parallelrun.cli.server import Client, Commands, Token, Url, connect
from parallelrun.progress.text import mini_batches, standing

if TYPE_CHECKING:
    from parallelrun.models import Job
    from parallelrun_core.spec.notify import Notify

job = Commands(help="The jobs of a server.")


def create(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The job file.", show_default=False)],
    assignments: Assignments = None,
    inputs: InputPlaces = None,
    resume_from: Annotated[
        str, typer.Option(metavar="ID", help="Take over what this earlier job has finished, and run only the rest.")
    ] = "",
    notify: Annotated[str, typer.Option(metavar="URL", help="Tell this URL when the job has ended.")] = "",
    notify_secret: Annotated[
        str, typer.Option(metavar="NAME", help="The key that signs it: webhooks/HOST/NAME in the masters' secrets.")
    ] = "",
    stream: Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")] = False,
    strict: StrictOption = False,
    idempotency_key: Annotated[
        str, typer.Option(metavar="KEY", help="Submitting again with the same key gives the same job.")
    ] = "",
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Submit a job, and print its id."""
    from parallelrun.client import server_to_use
    from parallelrun.packaging.submission import notes_on
    from parallelrun.resources.names import names_at
    from parallelrun.top.page import address_of

    reading = read_with_options(file, assignments, inputs, names_at(lambda: server_to_use(url, token)))
    spec = reading.spec.model_copy(update={"resume_from": resume_from}) if resume_from else reading.spec
    if notify or notify_secret:
        spec = spec.model_copy(update={"notify": _notify(notify, notify_secret)})
    with connect(url=url, token=token) as client:
        with reading.locating_problems():
            created = client.jobs.create(spec, idempotency_key=idempotency_key or None)
        say_notes(notes_on(reading, created.notes))
        show_change(created, form, name=created.id)
        if spec.resume_from:
            say(_what_is_taken_over(created, spec.resume_from))
        if stream:
            raise typer.Exit(follow_job(client, created, strict=strict))
    say(f"open its page:    {address_of(client.url, created.id)}")
    say(f"follow it:        parallelrun job stream {created.id}")
    say(f"show its state:   parallelrun job show {created.id}")
    say(f"cancel it:        parallelrun job cancel {created.id}")
    say(f"fetch the output: parallelrun job download {created.id}")


def _what_is_taken_over(created: Job, earlier: str) -> str:
    if created.steps:
        return f"steps that are equal to those that {earlier} has finished are taken over as they begin"
    from parallelrun_core.figures import counted

    return f"took over {counted(created.progress.resumed, 'mini-batch')} from {earlier}"


def _notify(url: str, secret: str) -> Notify:
    from pydantic import ValidationError

    from parallelrun.errors import InvalidInput, Problem
    from parallelrun_core.spec.notify import Notify

    try:
        return Notify.model_validate({"url": url, "secret": secret})
    except ValidationError as error:
        options = {"url": "--notify", "secret": "--notify-secret"}
        problems = [
            Problem(pointer=options[str(each["loc"][-1])], message=each["msg"].removeprefix("Value error, "))
            for each in error.errors()
        ]
        raise InvalidInput(problems=tuple(problems)) from error


def list_jobs(
    client: Client,
    *,
    status: Annotated[str, typer.Option(help="Only jobs in this state.", autocompletion=job_states)] = "",
    parent: Annotated[str, typer.Option(metavar="ID", help="Only the jobs of the steps of this pipeline.")] = "",
    steps: Annotated[bool, typer.Option("--steps", help="Also jobs of steps of pipelines.")] = False,
    owner: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only jobs of this person: the name of a token.", show_default=False),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also archived jobs.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of jobs.")] = 50,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """List jobs, newest first."""
    jobs = list(
        client.jobs.list(
            status=status or None, parent=parent or None, steps=steps, owner=owner, archived=archived, limit=limit
        )
    )
    show_list(
        jobs,
        form,
        name=lambda each: each.id,
        columns=[
            "id",
            "name",
            "type",
            *(["owner"] if any(each.owner for each in jobs) else []),
            ("STATE", standing),
            ("MINI-BATCHES", lambda each: mini_batches(each.progress)),
            ("FAILED", lambda each: each.progress.failed),
            "submitted",
            "ended",
        ],
    )


def list_mini_batches(
    client: Client,
    job_id: JobId,
    *,
    status: Annotated[
        str,
        typer.Option(
            help="ready, running, done or failed; by default done and failed.",
            autocompletion=one_of("ready", "running", "done", "failed"),
        ),
    ] = "",
    limit: LimitOption = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show the mini-batches of a job. Says where each was run, how long, and what went wrong."""
    show_list(
        islice(client.jobs.mini_batches(job_id, status=status or None), limit),
        form,
        name=lambda each: str(each.id),
        columns=[
            "id",
            "status",
            "tries",
            "items",
            "rows",
            ("SECONDS", lambda each: each.run_s and round(each.run_s, 3)),
            "node",
            "process",
            ("ERROR", lambda each: each.failure and f"{each.failure.category}: {each.failure.message}"),
        ],
    )


def list_failed_items(
    client: Client,
    job_id: JobId,
    *,
    mini_batch: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only those of this mini-batch.", show_default=False)
    ] = None,
    category: Annotated[str, typer.Option(help="Only those that failed like this, as in RUN_EXCEPTION.")] = "",
    limit: LimitOption = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show each item of a job that has failed for good, and why. They are listed once the job has ended."""

    from parallelrun_core.untrusted.sanitize import csv_cell

    items = islice(client.jobs.failed_items(job_id, mini_batch=mini_batch, category=category), limit)
    if as_csv:
        print("item,mini_batch,category,message,place")
        for each in items:
            words = ",".join(map(csv_cell, (each.category, each.message, each.place)))
            print(f"{csv_cell(each.item)},{each.mini_batch},{words}")
        return
    show_list(
        items,
        form,
        name=lambda each: each.item,
        columns=["item", ("MINI-BATCH", lambda each: each.mini_batch), "category", "place", "message"],
    )


def list_metrics(client: Client, job_id: JobId, form: FormatOption = OutputFormat.TABLE) -> None:
    """Show the metrics of a job. Its script has logged them, with MLflow or otherwise."""
    show_list(
        client.jobs.metrics(job_id),
        form,
        columns=[
            "name",
            "kind",
            ("VALUES", lambda each: each.count),
            ("LAST", lambda each: each.points[-1].value if each.points else None),
            ("STEP", lambda each: each.points[-1].step if each.points else None),
            ("TIME", lambda each: each.points[-1].time if each.points else None),
        ],
    )


_COMMANDS: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    ("create", create), ("list", list_jobs), ("show", show), ("stream", stream), ("logs", logs),
    ("download", download), ("open", open_page), ("top", top),
    ("cancel", cancel), ("pause", pause), ("resume", resume), ("retry", retry), ("prioritize", prioritize),
    ("mini-batches", list_mini_batches), ("failed-items", list_failed_items), ("metrics", list_metrics),
    ("explain", explain), ("advise", advise), ("report", report), ("stacks", stacks), ("profile", profile),
    ("replay", replay),
    ("tag", tag), ("archive", archive), ("restore", restore), ("delete", delete),
    ("remembered", remembered), ("forget", forget),
)  # fmt: skip
"""In the order of their help: submit and follow, steer, look closer, tidy up."""
for _name, _command in _COMMANDS:
    job.command(_name)(_command)
