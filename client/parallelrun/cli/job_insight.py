"""`parallelrun job stacks|profile|explain`: what the code of a job does, and why it doesn't run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat, say, show, show_list, table
from parallelrun.cli.server import Client
from parallelrun.progress.text import clean

if TYPE_CHECKING:
    from parallelrun.models import Explanation
    from parallelrun_core.answers.stacks import NodeStacks, WorkerStacks

_DOING = {
    "waits_for_work": "waits for a mini-batch",
    "computes": "computes",
    "waits": "waits",
    "unknown": "is not known",
}
_MARKS: Final = {"met": "ok", "waits": "waits", "blocks": "blocks"}


def stacks(
    client: Client,
    job_id: JobId,
    *,
    node: Annotated[str, typer.Option(metavar="NAME", help="Only the workers of this node.")] = "",
    worker: Annotated[str, typer.Option(metavar="PROCESS", help="Only this worker, such as process000.")] = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show in which line each worker of a running job is. Also one that hangs; the job is not disturbed."""
    answer = client.jobs.stacks(job_id, node=node, process=worker)
    workers = (f"{each.node}/{one.process}" for each in answer.nodes for one in each.workers)
    lines = (clean(line, most=1000) for each in answer.nodes for line in _lines(each))
    show(answer, form, names=workers, lines=lines)
    for name in answer.silent:
        say(f"node {name} has not answered: see `parallelrun node list`", is_alarming=True)
    if answer.silent:
        raise typer.Exit(1)


def profile(
    client: Client,
    job_id: JobId,
    *,
    sort: Annotated[
        str,
        typer.Option(
            metavar="BY", help="cumulative, own or calls.", autocompletion=one_of("cumulative", "own", "calls")
        ),
    ] = "cumulative",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number of functions.")] = 30,
    node: Annotated[str, typer.Option(metavar="NAME", help="Only the workers of this node.")] = "",
    worker: Annotated[str, typer.Option(metavar="PROCESS", help="Only this worker, such as process000.")] = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show in which functions a job has spent its time. It needs a `profiling_module`; of all workers, or of some."""
    if sort not in ("cumulative", "own", "calls"):
        raise typer.BadParameter(f"{sort!r} is none of cumulative, own and calls", param_hint="--sort")
    measured = client.jobs.profile(job_id, node=node, process=worker, sort=sort, limit=limit)
    if form is OutputFormat.TABLE and not measured.workers and not measured.profiling_module:
        say("The job has no profiling_module; one that has: job create --set profiling_module=cProfile")
        return
    show_list(
        measured.items,
        form,
        name=lambda each: f"{each.file}:{each.line}:{each.function}",
        columns=[
            ("CUMULATIVE", lambda each: f"{each.cumulative_s:.3f}"),
            ("OWN", lambda each: f"{each.own_s:.3f}"),
            ("CALLS", lambda each: f"{each.calls:,}"),
            "function",
            ("WHERE", lambda each: f"{each.file}:{each.line}" if each.file else ""),
        ],
    )
    if form is OutputFormat.TABLE:
        say(f"{measured.total_s:,.3f} s in {measured.count:,} functions of {len(measured.workers):,} workers")
        if measured.left_out:
            say(f"{measured.left_out:,} more profiles can't be shown here: see `parallelrun job logs {job_id}`")


def _lines(node: NodeStacks) -> list[str]:
    lines = []
    for worker in node.workers:
        lines += [f"{node.node}/{worker.process} (pid {worker.pid}) {_DOING.get(worker.doing, worker.doing)}"]
        lines += [f"  {worker.note}"] if worker.note else []
        lines += _threads(worker)
    if node.left_out:
        lines.append(f"{node.node}: {node.left_out} more workers; --worker NAME shows one of them")
    return lines


def _threads(worker: WorkerStacks) -> list[str]:
    lines = []
    for thread in worker.threads:
        if thread.frames:
            lines.append("  main thread:" if thread.is_main else f"  thread {thread.name}".rstrip() + ":")
            lines += [f"    {frame.file}:{frame.line or '?'} {frame.function}" for frame in thread.frames]
    return lines


def explain(
    client: Client,
    job_id: JobId,
    *,
    mini_batch: Annotated[
        int | None, typer.Option("--mini-batch", metavar="N", min=0, help="Only this mini-batch.", show_default=False)
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Say why a job or a mini-batch doesn't run. Each condition is listed, with what to do about the first one that
    isn't met."""
    explanation = client.jobs.explain(job_id, mini_batch=mini_batch)
    unmet = (each.name for each in explanation.conditions if each.state != "met")
    show(explanation, form, names=unmet, lines=_lines_of_explanation(explanation))


def _lines_of_explanation(explanation: Explanation) -> Iterator[str]:
    subject = explanation.job if explanation.mini_batch is None else f"mini-batch {explanation.mini_batch}"
    yield clean(f"{subject}: {explanation.answer}")
    if explanation.advice:
        yield clean(f"what to do: {explanation.advice}")
    if explanation.conditions:
        yield ""
        rows = [[each.name, _MARKS.get(each.state, each.state), each.text] for each in explanation.conditions]
        yield from table(["CONDITION", "STATE", "WHY"], rows)
