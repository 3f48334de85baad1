"""`parallelrun job explain`: why a job, or one of its mini-batches, doesn't run now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat, dump, table
from parallelrun.cli.server import Token, Url, connect
from parallelrun.progress.text import clean

if TYPE_CHECKING:
    from parallelrun.models import Explanation

_MARKS: Final = {"met": "ok", "waits": "waits", "blocks": "blocks"}


def explain(
    job_id: JobId,
    *,
    mini_batch: Annotated[
        int | None, typer.Option("--mini-batch", metavar="N", min=0, help="Only this mini-batch.", show_default=False)
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Say why a job or a mini-batch doesn't run. Each condition is listed, with what to do about the first one that
    isn't met."""
    with connect(url, token) as client:
        explanation = client.jobs.explain(job_id, mini_batch=mini_batch)
    if form is OutputFormat.NAME:
        print(*(each.name for each in explanation.conditions if each.state != "met"), sep="\n")
    elif form is OutputFormat.TABLE:
        _show(explanation)
    else:
        dump(explanation, form)


def _show(explanation: Explanation) -> None:
    subject = explanation.job if explanation.mini_batch is None else f"mini-batch {explanation.mini_batch}"
    print(clean(f"{subject}: {explanation.answer}"))
    if explanation.advice:
        print(clean(f"what to do: {explanation.advice}"))
    if explanation.conditions:
        print()
        rows = [[each.name, _MARKS.get(each.state, each.state), each.text] for each in explanation.conditions]
        table(["CONDITION", "STATE", "WHY"], rows)
