"""`parallelrun usage`"""

from __future__ import annotations

import csv
import sys
from typing import Annotated

import typer

from parallelrun.cli.output import Format, FormatOption
from parallelrun.cli.server import Token, Url, connect

_COLUMNS = ("week", "owner", "slot_hours", "gpu_hours", "cost")


def usage(
    *,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Show who has used the cluster. Hours of slots and GPUs by week and person, and what they cost."""
    from parallelrun.cli.output import show_list
    from parallelrun_core.untrusted.sanitize import csv_cell

    with connect(url, token) as client:
        weeks = client.usage.list()
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(
            [each.week, csv_cell(each.owner), each.slot_hours, each.gpu_hours, each.cost] for each in weeks
        )
        return
    show_list(
        weeks,
        form,
        name=lambda each: f"{each.week} {each.owner}",
        columns=[
            ("WEEK", lambda each: each.week),
            ("OWNER", lambda each: each.owner),
            ("SLOT HOURS", lambda each: f"{each.slot_hours:,.2f}"),
            ("GPU HOURS", lambda each: f"{each.gpu_hours:,.2f}"),
            ("COST", lambda each: f"{each.cost:,.2f}"),
        ],
    )
