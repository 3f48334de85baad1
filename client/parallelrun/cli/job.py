"""`parallelrun job …`: jobs of a server."""

from __future__ import annotations

import codecs
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.cli.output import Format, FormatOption
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun.models import Job

job = typer.Typer(help="The jobs of a server.", no_args_is_help=True, rich_markup_mode=None)

_PRINTED: Final = ("stdout", "stderr")
JobId = Annotated[str, typer.Argument(metavar="ID", show_default=False)]


@job.command()
def create(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The job file.", show_default=False)],
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a field. Can be repeated.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="[NAME=]PLACE", help="Where an input is, such as the data of a batch deployment."
        ),
    ] = None,
    resume_from: Annotated[
        str, typer.Option(metavar="ID", help="Take over what this earlier job has finished, and run only the rest.")
    ] = "",
    stream: Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")] = False,
    idempotency_key: Annotated[
        str, typer.Option(metavar="KEY", help="Submitting again with the same key gives the same job.")
    ] = "",
    url: Url = "",
    token: Token = "",
) -> None:
    """Submit a job, and print its id."""
    from parallelrun.cli.output import say, say_notes
    from parallelrun.names import names_at
    from parallelrun.spec_file import input_assignments, read_job_file

    changes = [*(assignments or ()), *input_assignments(inputs or ())]
    reading = read_job_file(file, changes, names_at(url, token))
    say_notes(reading.notes)
    spec = reading.job.model_copy(update={"resume_from": resume_from}) if resume_from else reading.job
    with connect(url, token) as client:
        with reading.locating_problems():
            created = client.jobs.create(spec, idempotency_key=idempotency_key or None)
        print(created.id, flush=True)
        if spec.resume_from:
            say(f"{created.progress.resumed:,} mini-batches were taken over from {spec.resume_from}")
        if stream:
            raise typer.Exit(_follow(client, created))
    say(f"follow it:        parallelrun job stream {created.id}")
    say(f"show its state:   parallelrun job show {created.id}")
    say(f"cancel it:        parallelrun job cancel {created.id}")
    say(f"fetch the output: parallelrun job download {created.id}")


@job.command("list")
def list_jobs(
    status: Annotated[str, typer.Option(help="Only jobs in this state.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of jobs.")] = 50,
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """List jobs, newest first."""
    from parallelrun.cli.output import show_list
    from parallelrun.progress.text import mini_batches

    with connect(url, token) as client:
        show_list(
            client.jobs.list(status=status or None, limit=limit),
            form,
            name=lambda each: each.id,
            columns=[
                ("ID", lambda each: each.id),
                ("NAME", lambda each: each.name),
                ("STATE", lambda each: each.state),
                ("MINI-BATCHES", lambda each: mini_batches(each.progress)),
                ("FAILED", lambda each: each.progress.failed),
                ("SUBMITTED", lambda each: each.submitted),
                ("ENDED", lambda each: each.ended),
            ],
        )


@job.command("mini-batches")
def list_mini_batches(
    job_id: JobId,
    *,
    status: Annotated[str, typer.Option(help="ready, running, done or failed; by default done and failed.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="The maximum number.", show_default="all")] = None,
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Show the mini-batches of a job: where each was run, how long, and what went wrong."""
    from itertools import islice

    from parallelrun.cli.output import show_list

    with connect(url, token) as client:
        show_list(
            islice(client.jobs.mini_batches(job_id, status=status or None), limit),
            form,
            name=lambda each: str(each.id),
            columns=[
                ("ID", lambda each: each.id),
                ("STATUS", lambda each: each.status),
                ("TRIES", lambda each: each.tries),
                ("ITEMS", lambda each: each.items),
                ("ROWS", lambda each: each.rows),
                ("SECONDS", lambda each: each.run_s and round(each.run_s, 3)),
                ("NODE", lambda each: each.node),
                ("PROCESS", lambda each: each.process),
                ("ERROR", lambda each: each.failure and f"{each.failure['category']}: {each.failure['message']}"),
            ],
        )


@job.command("metrics")
def list_metrics(job_id: JobId, form: FormatOption = Format.TABLE, url: Url = "", token: Token = "") -> None:
    """Show what the entry script of a job has logged as metrics."""
    from parallelrun.cli.output import show_list

    with connect(url, token) as client:
        show_list(
            client.jobs.metrics(job_id),
            form,
            name=lambda each: each.name,
            columns=[
                ("NAME", lambda each: each.name),
                ("VALUES", lambda each: each.count),
                ("LAST", lambda each: each.points[-1].value if each.points else None),
                ("STEP", lambda each: each.points[-1].step if each.points else None),
                ("TIME", lambda each: each.points[-1].time if each.points else None),
            ],
        )


@job.command()
def show(job_id: JobId, form: FormatOption = Format.TABLE, url: Url = "", token: Token = "") -> None:
    """Show one job."""
    from parallelrun.cli.output import show_one
    from parallelrun.progress.text import describe
    from parallelrun.summary import hints, summary

    with connect(url, token) as client:
        shown = client.jobs.get(job_id)

    def log_hint(log: str) -> str:
        return f"parallelrun job logs {shown.id} {log}"

    lines = [
        ("id", shown.id),
        ("name", shown.name),
        ("state", shown.state),
        ("progress", describe(shown.state, shown.progress, items_per_s=None, left_s=None).partition(": ")[2]),
        ("submitted", shown.submitted),
        ("started", shown.started),
        ("ended", shown.ended),
        ("output", shown.output.path if shown.output else ""),
        ("metrics", "\n".join(f"{name}: {value}" for name, value in shown.metrics.items())),
        ("notes", "\n".join(shown.notes)),
        ("hints", "\n".join(hints(shown, log_hint=log_hint, retry=f"parallelrun job retry {shown.id}"))),
        ("failure", "\n".join(summary(shown, log_hint=log_hint)) if shown.failure else ""),
    ]
    show_one(shown, form, name=shown.id, lines=lines)


@job.command()
def stream(job_id: JobId, url: Url = "", token: Token = "") -> None:
    """Follow a job until it ends; the exit code is the job's. Ctrl-C stops following, not the job."""
    with connect(url, token) as client:
        raise typer.Exit(_follow(client, client.jobs.get(job_id)))


@job.command()
def logs(
    job_id: JobId,
    path: Annotated[
        str,
        typer.Argument(
            help="The log to print; stdout or stderr: what the workers' own code printed. Without it, all are listed.",
            show_default=False,
        ),
    ] = "",
    *,
    tail: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the last N lines.")] = None,
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """List a job's logs, or print one."""
    from parallelrun.cli.output import show_list
    from parallelrun.progress.text import clean

    if tail is not None and not path:
        raise typer.BadParameter("--tail needs a log path: parallelrun job logs ID PATH --tail N")
    with connect(url, token) as client:
        if not path:
            show_list(
                client.logs.list(job_id),
                form,
                name=lambda each: each.path,
                columns=[
                    ("PATH", lambda each: each.path),
                    ("BYTES", lambda each: each.bytes),
                    ("MODIFIED", lambda each: each.modified),
                ],
            )
            return
        paths = [path]
        if path in _PRINTED:
            paths = [each.path for each in client.logs.list(job_id) if each.path.startswith(f"user/{path}/")]
        chunks = chain.from_iterable(client.logs.read(job_id, each, tail=tail) for each in paths)
        if sys.stdout.isatty():
            # A character may begin in one chunk and end in the next one.
            for text in codecs.iterdecode(chunks, "utf-8", errors="replace"):
                sys.stdout.write(clean(text, lines=True, most=len(text)))
        else:
            sys.stdout.buffer.writelines(chunks)


@job.command()
def cancel(
    job_id: JobId,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job has ended.")] = False,
    url: Url = "",
    token: Token = "",
) -> None:
    """Stop a job. Running work is discarded, and there will be no output."""
    with connect(url, token) as client:
        canceled = client.jobs.cancel(job_id)
        if wait:
            canceled = client.jobs.wait(job_id, raise_on_failure=False)
    print(f"{canceled.id} {canceled.state}")


AcceptChanged = Annotated[
    bool, typer.Option("--accept-changed-inputs", help="Continue even if input files have changed or are gone.")
]
FollowOption = Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")]


@job.command()
def resume(
    job_id: JobId,
    *,
    accept_changed_inputs: AcceptChanged = False,
    follow: FollowOption = False,
    url: Url = "",
    token: Token = "",
) -> None:
    """Continue a failed or canceled job: run its mini-batches that have no result yet.

    It runs the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    with connect(url, token) as client:
        reopened = client.jobs.resume(job_id, accept_changed_inputs=accept_changed_inputs)
        _say_which_code(reopened)
        if follow:
            raise typer.Exit(_follow(client, reopened))


@job.command()
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
    url: Url = "",
    token: Token = "",
) -> None:
    """Run the failed mini-batches of a job again, into the same output.

    It runs the code as it was submitted. To run changed code, create a new job with `job create --resume-from ID`.
    """
    try:
        numbers = [int(number) for number in mini_batches.split(",")] if mini_batches else None
    except ValueError as error:
        raise typer.BadParameter(f"{mini_batches!r} is not a list of numbers such as 4,9") from error
    with connect(url, token) as client:
        reopened = client.jobs.retry(job_id, mini_batches=numbers, accept_changed_inputs=accept_changed_inputs)
        _say_which_code(reopened)
        if follow:
            raise typer.Exit(_follow(client, reopened))


def _say_which_code(reopened: Job) -> None:
    from parallelrun.cli.output import say

    print(f"{reopened.id} {reopened.state}")
    say(f"it runs the code as submitted on {reopened.submitted}; to run changed code, create a new job with")
    say(f"  parallelrun job create -f JOB.yml --resume-from {reopened.id}")


@job.command()
def download(
    job_id: JobId,
    folder: Annotated[
        str | None, typer.Option("--path", "-p", metavar="DIR", help="Folder for the files.", show_default="./ID")
    ] = None,
    url: Url = "",
    token: Token = "",
) -> None:
    """Download all outputs of a job, and print their paths. Continues an interrupted download."""
    from parallelrun.cli.output import say
    from parallelrun.errors import NotFound
    from parallelrun.local_folder import local_folder
    from parallelrun_core.words import visible

    target = local_folder(folder, "--path") if folder else Path(job_id)
    with connect(url, token) as client:
        is_any, elsewhere = False, dict[str, str]()
        for place in client.outputs.download_all(job_id, target, on_elsewhere=elsewhere.update):
            print(visible(str(place), lines=False), flush=True)
            is_any = True
        for where in elsewhere.values():
            say(visible(f"in an object store, to be fetched from there: {where}", lines=False))
            is_any = True
        if not is_any:
            raise NotFound(f"Job {job_id} has no outputs; its state is {client.jobs.get(job_id).state}.", status=404)


def _follow(client: Client, job: Job) -> ExitCode:
    from parallelrun.cli.output import say, say_summary
    from parallelrun.progress.watch import watch_on_stderr
    from parallelrun.summary import is_clean, summary

    try:
        ended = watch_on_stderr(client, job)
    except KeyboardInterrupt:
        say(f"\nThe job continues. Follow it again: parallelrun job stream {job.id}")
        say(f"                   Cancel it:       parallelrun job cancel {job.id}")
        raise
    lines = summary(
        ended,
        log_hint=lambda log: f"parallelrun job logs {job.id} {log}",
        retry=f"parallelrun job retry {job.id}",
    )
    say_summary(lines, is_clean=is_clean(ended))
    if ended.output:
        from parallelrun_core.storage.location import is_url

        fetch = f"fetch the output: parallelrun job download {job.id}"
        say(f"output: {ended.output.path}" if is_url(ended.output.path) else fetch)
    return of_state(ended.state)
