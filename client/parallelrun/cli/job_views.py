"""`parallelrun job top` and `job open`: a job on a screen or on its page."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli import completion
from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.cli.job_files import JobId
from parallelrun.cli.job_follow import say_end_of
from parallelrun.cli.output import FormatOption, OutputFormat, say, show
from parallelrun.cli.server import Client

if TYPE_CHECKING:
    from rich.console import RenderableType

    from parallelrun.models import Job
    from parallelrun.top.snapshot import Snapshot

AnyJob = Annotated[
    str,
    typer.Argument(
        metavar="[ID]",
        help="By default, the newest job that runs, else the newest.",
        show_default=False,
        autocompletion=completion.jobs,
    ),
]

_NEWEST: Final = 50
_RUNNING: Final = ("processing", "finalizing", "queued")
_EVERY_S: Final = 1.0
_PLAIN_WIDTH: Final = 120
_PLAIN_HEIGHT: Final = 60


def top(
    client: Client,
    job_id: AnyJob = "",
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it as it is now, and end.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Watch a job's nodes, workers, speed and errors. Ends with the job; Ctrl-C stops watching, not the job.

    Where stdout is no terminal, and in other forms than a table, it is printed once.
    """
    from rich.console import Console

    from parallelrun.top.snapshot import take

    job = client.jobs.get(job_id) if job_id else _newest(client)
    is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not once and form is OutputFormat.TABLE
    if is_live:
        raise typer.Exit(_watch(client, job))
    if form is OutputFormat.TABLE:
        console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=False)
        console.print(_drawn(take(client, job), _PLAIN_HEIGHT))
    else:
        show(take(client, job), form, lines=(job.id,))


def open_page(
    client: Client,
    job_id: JobId,
    *,
    show: Annotated[bool, typer.Option("--print", help="Only print the address.")] = False,
) -> None:
    """Open the page of a job in a browser, signed in. Prints its address."""
    from parallelrun.top.page import address_of, open_in_browser, sign_in_address

    job = client.jobs.get(job_id)
    address = address_of(client.url, job.id)
    print(address, flush=True)
    if show:
        return
    signed_in = sign_in_address(client, job.id)
    if not open_in_browser(signed_in):
        say("There is no browser here. This address signs in, once, within ten minutes:")
        say(signed_in)


def _newest(client: Client) -> Job:
    from parallelrun.errors import NotFound

    newest = list(client.jobs.list(limit=_NEWEST))
    if not newest:
        raise NotFound("There are no jobs.", status=404)
    running = [job for job in newest if not job.has_ended]
    for state in _RUNNING if len(newest) == _NEWEST else ():  # one that takes long, behind many that didn't
        running = running or list(client.jobs.list(status=state, limit=1))
    return client.jobs.get((running or newest)[0].id)


def _watch(client: Client, watched: Job) -> ExitCode:
    """Redraw the screen until the job has ended; then say how, and exit as `job stream` does."""
    from rich.console import Console
    from rich.live import Live

    from parallelrun.top.snapshot import Snapshot, take_patiently

    console = Console(highlight=False, markup=False, emoji=False)
    snapshot = Snapshot(job=watched)
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for job in client.jobs.follow(watched.id, every_s=_EVERY_S):
            snapshot = take_patiently(client, job, snapshot)
            live.update(_drawn(snapshot, console.height), refresh=True)
            if not job.has_ended:
                time.sleep(_EVERY_S / 2)  # however often it changes
    console.print(_drawn(snapshot, console.height))
    say_end_of(snapshot.job)
    return of_state(snapshot.job.state)


def _drawn(snapshot: Snapshot, height: int) -> RenderableType:
    from parallelrun.models import Pace
    from parallelrun.top.screen import screen

    job = snapshot.job
    began = job.started or job.submitted
    lasted_s = None
    if began:
        ended = datetime.fromisoformat(job.ended) if job.ended else datetime.now(UTC)
        lasted_s = max(0.0, (ended - datetime.fromisoformat(began)).total_seconds())
    pace = job.pace if job.pace is not None and not job.has_ended else Pace()
    return screen(snapshot, lasted_s=lasted_s, items_per_s=pace.items_per_s, left_s=pace.left_s, height=height)
