"""`parallelrun job report`: a job as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.server import Token, Url, connect


def report(
    job_id: JobId,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; `-`: stdout.", show_default="ID.html")
    ] = "",
    url: Url = "",
    token: Token = "",
) -> None:
    """Write all that is known about a job into one file. It is HTML, such as for a ticket; prints its path.

    It needs nothing else to be read: no server, no network, no scripts.
    """
    from parallelrun.report.facts import gather
    from parallelrun.report.page import page

    with connect(url, token) as client:
        text = page(gather(client, job_id))
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output or f"{job_id}.html")
    # Whoever reads the earlier report in the same place never sees half of this one.
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    print(path)
