"""`parallelrun usage`"""

from __future__ import annotations

from typing import Annotated

import typer

from parallelrun.cli.output import FormatOption, OutputFormat, show_list
from parallelrun.cli.server import Token, Url, connect


def usage(
    *,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Show who has used the cluster. Hours of slots and GPUs by week and person, and what they cost."""
    from parallelrun_core.untrusted.sanitize import csv_cell

    with connect(url, token) as client:
        weeks = client.usage.list()
    if as_csv:
        print("week,owner,slot_hours,gpu_hours,cost,job_bytes,week_bytes")
        for each in weeks:
            size = "" if each.job_bytes is None else each.job_bytes
            hours = f"{each.slot_hours},{each.gpu_hours},{each.cost}"
            print(f"{each.week},{csv_cell(each.owner)},{hours},{size},{each.week_bytes}")
        return
    show_list(
        weeks,
        form,
        name=lambda each: f"{each.week} {each.owner}",
        columns=[
            "week",
            "owner",
            ("SLOT HOURS", lambda each: f"{each.slot_hours:,.2f}"),
            ("GPU HOURS", lambda each: f"{each.gpu_hours:,.2f}"),
            ("JOB BYTES", lambda each: "" if each.job_bytes is None else f"{each.job_bytes:,}"),
            ("OF THE WEEK", lambda each: f"{each.week_bytes:,}"),
            ("COST", lambda each: f"{each.cost:,.2f}"),
        ],
    )
