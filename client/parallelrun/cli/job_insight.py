"""`parallelrun job stacks|profile|explain|report|replay`: what the code of a job does, why it doesn't run, all on one
page, and one mini-batch again on this machine."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.completion import one_of
from parallelrun.cli.exit_codes import of_job
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat, dump, say, show_list, table
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
    if form is OutputFormat.NAME:
        print(*(f"{each.node}/{one.process}" for each in answer.nodes for one in each.workers), sep="\n")
    elif form is OutputFormat.TABLE:
        for each in answer.nodes:
            for line in _lines(each):
                print(clean(line, most=1000))
    else:
        dump(answer, form)
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


def report(
    client: Client,
    job_id: JobId,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; `-`: stdout.", show_default="ID.html")
    ] = "",
) -> None:
    """Write all that is known about a job into one file. It is HTML, such as for a ticket; prints its path.

    It needs nothing else to be read: no server, no network, no scripts.
    """
    from parallelrun.report.facts import gather
    from parallelrun.report.page import page

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


def replay(
    client: Client,
    job_id: JobId,
    mini_batch: Annotated[int, typer.Argument(metavar="MINI_BATCH", min=0, help="Its number.", show_default=False)],
    *,
    code: Annotated[Path, typer.Option(metavar="DIR", help="The folder with the entry script.")] = Path(),
    output: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for rows and logs.", show_default="./replay-ID-MINI_BATCH")
    ] = "",
) -> None:
    """Run one mini-batch of a job again on this machine. It is run by the code that is in DIR now, once; the job itself
    stays as it is. The files must have the same paths here."""
    import yaml
    from msgspec.structs import asdict

    from parallelrun.embedded.local_run import RunOptions, run_here
    from parallelrun.job_file.reading import read_spec
    from parallelrun.job_file.replay import replay_of
    from parallelrun.progress.display import display_on

    document = client.jobs.document(job_id)
    inputs = client.jobs.inputs_of(job_id, mini_batch)
    content = yaml.safe_load(document.text)
    limits = [asdict(client.limits.get(name)) for name in content.get("rate_limits", ())]
    for name in document.left_out:
        say(f"note: {name} of the job are secret, and not set here: export them if the script needs them")
    with tempfile.TemporaryDirectory(prefix="parallelrun-replay-") as folder:
        content = replay_of(content, inputs, Path(folder), code.resolve())
        end = run_here(
            read_spec({**content, "name": f"replay of {mini_batch}"}),
            RunOptions(folder=output or f"replay-{job_id}-{mini_batch}", processes=1, overwrite=True, limits=limits),
            resume_option=lambda _: "",
            display=display_on(sys.stderr, title=f"mini-batch {mini_batch}"),
        )
    result = end.result
    _print_text(result.logs and result.logs / "user" / "stdout")
    _print_text(result.logs and result.logs / "user" / "error")
    if result.output:
        print(f"output: {result.output}")
    print(f"logs: {result.logs}")
    raise typer.Exit(of_job(result.job, strict=True))


def _print_text(folder: Path | None) -> None:
    for file in sorted(folder.rglob("*.txt")) if folder else ():
        text = file.read_text(encoding="utf-8", errors="replace")
        sys.stdout.write(clean(text, lines=True, most=len(text)))
