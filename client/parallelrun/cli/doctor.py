"""`parallelrun doctor`: why something doesn't work, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.exit_codes import ExitCode
from parallelrun.cli.output import FormatOption, OutputFormat, dump
from parallelrun.cli.server import Token, Url
from parallelrun.progress.text import clean

if TYPE_CHECKING:
    from parallelrun.doctor.checkup import Reported


def doctor(
    job_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="JOB.yml", help="Also check this job file, with the paths of this machine.", show_default=False
        ),
    ] = None,
    *,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for a cluster's data.",
            envvar="PARALLELRUN_ROOT",
            show_default="the current folder",
        ),
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Check this machine, the cluster and a job file. A line for each thing says what to do.

    What it writes to try an output in a store, it removes.
    """
    from parallelrun.doctor.checkup import checkup
    from parallelrun_core.wire.finding import Level, Place

    url, token = _server(url, token)
    place = Place(
        root=(root or Path.cwd()).absolute(),
        redis_url=os.environ.get("REDIS_URL", "") or os.environ.get("PARALLELRUN_REDIS_URL", ""),
        url=url,
        token=token,
        job_file=job_file,
    )
    reports = list(_shown(checkup(place), form))
    if form in (OutputFormat.JSON, OutputFormat.YAML):
        dump(reports, form)
    raise typer.Exit(ExitCode.USAGE if any(each.level is Level.BAD for each in reports) else ExitCode.OK)


def _shown(reports: Iterator[Reported], form: OutputFormat) -> Iterator[Reported]:
    """Pass the reports on, each printed as soon as it is known, where lines are wanted."""
    for each in reports:
        if form is OutputFormat.TABLE:
            print(clean(f"{each.level:<5}{each.subject}: {each.what}{each.todo and f' -> {each.todo}'}"), flush=True)
        elif form is OutputFormat.NAME and each.level != "ok":
            print(each.subject, flush=True)
        yield each


def _server(url: str, token: str) -> tuple[str, str]:
    """The server to ask; empty if there is none."""
    from parallelrun.client import server_to_use
    from parallelrun.errors import ConnectionFailed

    try:
        return server_to_use(url, token)
    except ConnectionFailed:
        return "", ""
