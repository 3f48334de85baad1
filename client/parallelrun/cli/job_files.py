"""`parallelrun job logs` and `job download`: what a job has written."""

from __future__ import annotations

import codecs
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from parallelrun.cli import completion
from parallelrun.cli.output import FormatOption, OutputFormat, dump, say, show_list
from parallelrun.cli.server import Client, Token, Url, connect
from parallelrun.progress.text import clean

_PRINTED: Final = ("stdout", "stderr")

JobId = Annotated[str, typer.Argument(metavar="ID", show_default=False, autocompletion=completion.jobs)]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False, autocompletion=completion.jobs)]


def logs(
    job_id: JobId,
    path: Annotated[
        str,
        typer.Argument(
            help="The log to print; stdout or stderr: what the workers' own code printed. Without it, all are listed.",
            show_default=False,
            autocompletion=completion.logs,
        ),
    ] = "",
    *,
    step: Annotated[str, typer.Option(metavar="NAME", help="Those of this step of the pipeline.")] = "",
    tail: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the last N lines.")] = None,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """List a job's logs, or print one."""
    if tail is not None and not path:
        raise typer.BadParameter("--tail needs a log path: parallelrun job logs ID PATH --tail N")
    if path and form is not OutputFormat.TABLE:
        raise typer.BadParameter("it is the form of the list; a log is printed as it is", param_hint="--output")
    with connect(url=url, token=token) as client:
        if step:
            job_id = _job_of_step(client, job_id, step)
        if not path:
            show_list(
                client.logs.list(job_id),
                form,
                name=lambda each: each.path,
                columns=["path", "bytes", "modified"],
            )
            return
        paths = [path]
        if path in _PRINTED:
            paths = [each.path for each in client.logs.list(job_id) if each.path.startswith(f"user/{path}/")]
            if not paths:
                of_steps = "; those of its steps may have: --step NAME" if client.jobs.get(job_id).is_pipeline else ""
                say(f"no worker of the job has printed to {path}{of_steps}")
        chunks = chain.from_iterable(client.logs.read(job_id, each, tail=tail) for each in paths)
        if sys.stdout.isatty():
            # A character may begin in one chunk and end in the next one.
            for text in codecs.iterdecode(chunks, "utf-8", errors="replace"):
                sys.stdout.write(clean(text, lines=True, most=len(text)))
        else:
            sys.stdout.buffer.writelines(chunks)


def _job_of_step(client: Client, job_id: str, name: str) -> str:
    """The job that runs a step of a pipeline; `outer/inner` is a step of a pipeline that is a step."""
    for each in name.split("/"):
        steps = client.jobs.steps(job_id)
        if each not in steps:
            raise typer.BadParameter(f"Job {job_id} has no step {each!r}; it has: {', '.join(steps) or 'none'}")
        if not (job := steps[each].job):
            raise typer.BadParameter(f"The step {each!r} has no logs: it is {steps[each].state}.")
        job_id = job
    return job_id


def download(
    client: Client,
    job_id: JobId,
    folder: Annotated[
        str | None, typer.Option("--path", "-p", metavar="DIR", help="Folder for the files.", show_default="./ID")
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Download all outputs of a job, and print their paths. Continues an interrupted download."""
    from parallelrun.errors import NotFound
    from parallelrun.local_folder import local_folder
    from parallelrun_core.untrusted.sanitize import visible

    target = local_folder(folder, "--path") if folder else Path(job_id)
    places, elsewhere = list[str](), dict[str, str]()
    for place in client.outputs.download_all(job_id, target, on_elsewhere=elsewhere.update):
        places.append(str(place))
        if form in (OutputFormat.TABLE, OutputFormat.NAME):
            print(visible(str(place), lines=False), flush=True)
    for where in elsewhere.values():
        say(visible(f"in an object store, to be fetched from there: {where}", lines=False))
    if form in (OutputFormat.JSON, OutputFormat.YAML):
        dump({"files": places, "elsewhere": elsewhere}, form)
    if not places and not elsewhere:
        state = client.jobs.get(job_id).state
        resume = f" `parallelrun job resume {job_id}` continues it." if state in ("canceled", "failed") else ""
        raise NotFound(f"Job {job_id} has no outputs; its state is {state}.{resume}", status=404)
