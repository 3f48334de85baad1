"""`parallelrun job stacks`: what the code of a job does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import Format, FormatOption
from parallelrun.cli.server import Token, Url, connect

if TYPE_CHECKING:
    from parallelrun.stacks import NodeStacks, WorkerStacks

_DOING = {
    "waits_for_work": "waits for a mini-batch",
    "computes": "computes",
    "waits": "waits",
    "unknown": "is not known",
}


def stacks(
    job_id: JobId,
    *,
    node: Annotated[str, typer.Option(metavar="NAME", help="Only the workers of this node.")] = "",
    worker: Annotated[str, typer.Option(metavar="PROCESS", help="Only this worker, such as process000.")] = "",
    form: FormatOption = Format.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Show in which line each worker of a running job is, also one that hangs. The job is not disturbed."""
    import msgspec

    from parallelrun.cli.output import dump, say
    from parallelrun.progress.text import clean

    with connect(url, token) as client:
        shown = client.jobs.stacks(job_id, node=node, process=worker)
    if form is Format.NAME:
        print(*(f"{each.node}/{one.process}" for each in shown.nodes for one in each.workers), sep="\n")
    elif form is Format.TABLE:
        for each in shown.nodes:
            for line in _lines(each):
                print(clean(line, most=1000))
    else:
        dump(msgspec.to_builtins(shown), form)
    for name in shown.silent:
        say(f"node {name} has not answered: see `parallelrun node list`", is_alarming=True)
    if shown.silent:
        raise typer.Exit(1)


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
