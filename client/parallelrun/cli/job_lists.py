"""`parallelrun job mini-batches|failed-items|metrics`: what a job consists of, and what it has measured."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import Annotated

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, LimitOption, OutputFormat, show_csv, show_list
from parallelrun.cli.server import Client


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
    items = islice(client.jobs.failed_items(job_id, mini_batch=mini_batch, category=category), limit)
    if as_csv:
        columns = ("item", "mini_batch", "category", "message", "place")
        show_csv(columns, map(attrgetter(*columns), items), form)
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
