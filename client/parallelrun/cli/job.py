"""`parallelrun job …`: how a job is made, which there are, and the order of all commands.

Of one job, each command is in the module of its subject:

    job_show.py, job_follow.py, job_views.py    how it stands: once, until it ends, on a screen or a page
    job_control.py                              steers it
    job_lists.py                                its mini-batches, failed items and metrics
    job_files.py                                what it has written
    job_insight.py, advise.py                   why it doesn't run, what its code does, what would make it faster
    job_offline.py                              on one page, and one mini-batch again, without its server
    job_remembered.py                           what its entry script keeps for later tries
    job_removal.py                              its tags, and whether it is listed, or there at all
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from parallelrun.cli.advise import advise
from parallelrun.cli.completion import job_states
from parallelrun.cli.exit_codes import StrictOption
from parallelrun.cli.job_control import cancel, pause, prioritize, resume, retry
from parallelrun.cli.job_file_options import Assignments, InputPlaces, read_with_options
from parallelrun.cli.job_files import download, logs
from parallelrun.cli.job_follow import check_strict, follow_job, stream
from parallelrun.cli.job_insight import explain, profile, stacks
from parallelrun.cli.job_lists import list_failed_items, list_metrics, list_mini_batches
from parallelrun.cli.job_offline import replay, report
from parallelrun.cli.job_remembered import forget, remembered
from parallelrun.cli.job_removal import archive, delete, restore, tag
from parallelrun.cli.job_show import show
from parallelrun.cli.job_views import open_page, top
from parallelrun.cli.output import FormatOption, OutputFormat, say, say_notes, show_change, show_list
from parallelrun.cli.server import Client, Commands, Token, Url, connect
from parallelrun.progress.text import mini_batches, standing

if TYPE_CHECKING:
    from parallelrun.errors import Problem
    from parallelrun.models import Job
    from parallelrun_core.spec.notify import Notify

job = Commands(help="Jobs on a server: create, watch, cancel, download.")


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
    from parallelrun.resources.names import resolver_at
    from parallelrun.top.page import address_of

    check_strict(strict=strict, follows=stream)
    if notify_secret and not notify:
        raise typer.BadParameter("it signs what --notify sends: name a URL, too", param_hint="--notify-secret")
    reading = read_with_options(file, assignments, inputs, resolver_at(lambda: server_to_use(url, token)))
    spec = reading.spec.model_copy(update={"resume_from": resume_from}) if resume_from else reading.spec
    if notify:
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
    from parallelrun_core.problems import validated
    from parallelrun_core.spec.notify import Notify
    from parallelrun_core.spec.problems import problem_of

    options = {"/url": "--notify", "/secret": "--notify-secret"}

    def problem_of_option(model: type[Notify], details: Any) -> Problem:
        problem = problem_of(model, details)
        return replace(problem, pointer=options[problem.pointer])

    return validated(Notify, {"url": url, "secret": secret}, problem_of=problem_of_option)


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
