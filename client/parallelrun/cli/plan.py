"""`parallelrun plan`: how much a job is, and on how many nodes it should run, before it runs."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.advise import seconds_of
from parallelrun.cli.job_file_options import Assignments, InputPlaces, JobFile, read_with_options
from parallelrun.cli.output import FormatOption, OutputFormat, say, say_notes, show
from parallelrun.cli.server import Token, Url, connect
from parallelrun.progress.text import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from parallelrun.job_file.plan import JobPlan
    from parallelrun.models import Node
    from parallelrun_core.adviser.trial import Trial
    from parallelrun_core.intake.reading import Reading
    from parallelrun_core.spec import JobSpec


def plan_command(
    job_file: JobFile,
    *,
    trial: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Run it for so long here, to say how long all of it takes.", show_default="not at all"
        ),
    ] = "",
    workers: Annotated[
        int,
        typer.Option(
            "--workers", "--processes", min=0, help="Workers per node.", show_default="as on the nodes that are there"
        ),
    ] = 0,
    assignments: Assignments = None,
    inputs: InputPlaces = None,
    form: FormatOption = OutputFormat.TABLE,
    url: Url = "",
    token: Token = "",
) -> None:
    """Say how much a job is, and on how many nodes to run it.

    The inputs are listed and cut as when the job runs; nothing of the script runs without --trial. The nodes are those
    of the cluster that is used; without one, this machine. Of a pipeline, each step is planned whose data are there.
    """
    from parallelrun.job_file.reading import check_paths

    reading = read_with_options(job_file, assignments, inputs)
    say_notes(reading.notes)
    for _, each in reading.jobs():
        with each.locating_problems():
            check_paths(each.job)
    nodes = _ready_nodes(url, token)
    trial_s = seconds_of(trial) if trial else None
    plans = {path: _planned(each, _of_compute(nodes, each.job), workers, trial_s) for path, each in reading.jobs()}
    answers = {path: plan and plan.as_dict(tried) for path, (plan, tried) in plans.items()}
    show({"steps": answers} if reading.pipeline else answers[""], form, lines=_lines_of_all(reading, plans))


def _lines_of_all(reading: Reading, plans: Mapping[str, tuple[JobPlan | None, Trial | None]]) -> Iterator[str]:
    for path, each in reading.jobs():
        plan, tried = plans[path]
        yield from [f"step {path}:"] if path else []
        for line in _lines(plan, tried) if plan else [_unplanned(each.job)]:
            yield f"  {line}" if path else line


def _planned(
    reading: Reading, nodes: Sequence[Node], workers: int, trial_s: float | None
) -> tuple[JobPlan | None, Trial | None]:
    """Plan a job, and try it if that is asked for; None: it has nothing to cut before other steps have run.

    Args:
        nodes: those that it can have; none: this machine is one.
        workers: of each node; 0: as the job says, or as there are slots on each of them.
        trial_s: seconds to run some of it; None: not at all.
    """
    from parallelrun.embedded.services import usable_cpus
    from parallelrun.job_file.plan import JobPlan, measure

    spec, cpus = reading.job, usable_cpus()
    if spec.command or not (spec.data_inputs() or spec.rank_mini_batch_count):
        return None, None
    disks = {node.node: node.disk_free_bytes for node in nodes}
    disks = disks or {"this machine": shutil.disk_usage(tempfile.gettempdir()).free}
    workers = workers or spec.max_concurrency_per_instance or 0
    slots = max(1, min((node.slots for node in nodes), default=cpus))
    plan = JobPlan(
        extent=measure(spec),
        is_auto=spec.size.is_auto,
        workers=workers or slots,
        nodes=min(len(disks), spec.instance_count or len(disks)),
        in_flight=1 if spec.mini_batches_in_flight == "auto" else spec.mini_batches_in_flight,
        disks_free=disks,
        has_data=not spec.rank_mini_batch_count,
    )
    return plan, None if trial_s is None else _tried(reading, workers or min(slots, cpus), trial_s)


def _unplanned(spec: JobSpec) -> str:
    return "a command: it runs once" if spec.command else "not known yet: its data are what other steps will write"


def _ready_nodes(url: str, token: str) -> list[Node]:
    """Return the nodes that take work; none if there is no cluster."""
    from parallelrun.errors import ConnectionFailed

    try:
        with connect(url=url, token=token) as client:
            return [node for node in client.nodes.list() if node.state == "ready"]
    except ConnectionFailed:
        if url:
            raise
        return []


def _of_compute(nodes: Sequence[Node], spec: JobSpec) -> Sequence[Node]:
    """Return the nodes of a job's compute. Its name has no effect where no compute is defined."""
    from parallelrun_core.names.computes import plain_name

    name = plain_name(spec.compute)
    return [each for each in nodes if each.compute == name] or [each for each in nodes if not each.compute] or nodes


def _tried(reading: Reading, workers: int, seconds: float) -> Trial:
    from parallelrun.tuning.tuning import tune

    with_workers = replace(reading, spec=reading.job.model_copy(update={"max_concurrency_per_instance": workers}))
    tuned = tune(with_workers, target_s=None, trial_s=seconds, most_trials=1, on_note=say, on_trial=lambda _: None)
    return tuned.best.trial


def _lines(plan: JobPlan, trial: Trial | None) -> Iterator[str]:
    from parallelrun_core.figures import counted

    extent = plan.extent
    least = "" if extent.is_complete else "at least "
    parts = [counted(extent.files, "file")] if extent.files else []
    parts += [counted(extent.rows, "row")] if extent.rows else []
    parts += [f"about {size(extent.bytes)}"] if extent.bytes else []
    nothing = "no files" if plan.has_data else "no data: each mini-batch is a number"
    yield f"input:         {least}{', '.join(parts) or nothing}"
    if plan.is_auto:
        yield "mini-batches:  of 10 s each, as the job finds out while it runs (mini_batch_size: auto)"
    else:
        largest = f", the largest of about {size(extent.largest_bytes)}" if extent.largest_bytes else ""
        yield f"mini-batches:  {least}{extent.mini_batches:,}{largest}"
    each = f"each of {plan.nodes:,} nodes" if plan.nodes > 1 else "one node"
    yield f"workers:       {plan.workers:,} on {each}"
    if plan.most_nodes:
        few = "; smaller mini-batches would give more of them something" if plan.most_nodes < plan.nodes else ""
        yield f"nodes:         up to {plan.most_nodes:,} have enough to do{few}"
    if plan.disk_bytes:
        yield f"disk:          about {size(plan.disk_bytes)} of each node, for what runs and what comes next"
        if plan.lacks_disk:
            yield f"  warning: {plan.lacks_disk}."
    else:
        yield "disk:          none of the nodes': inputs are read where they are"
    yield from _time_lines(plan, trial)


def _time_lines(plan: JobPlan, trial: Trial | None) -> Iterator[str]:
    from parallelrun_core.figures import counted, duration

    if trial is None:
        yield "time:          not known before some of it has run: add --trial 30s"
        return
    here = f"measured here with {counted(trial.processes, 'worker')}"
    yield f"time:          {duration(trial.mini_batch_s)} for a mini-batch, {here}"
    for count in plan.node_counts():
        mark = "  <- as many as there are" if count == plan.nodes else ""
        yield f"  {counted(count, 'node'):>12}  {duration(trial.seconds(count))}{mark}"
