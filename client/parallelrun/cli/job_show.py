"""`parallelrun job show`: one job, with its slowest mini-batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import FormatOption, OutputFormat, show_one
from parallelrun.cli.server import Client
from parallelrun.progress.text import chosen_size, describe, standing, waiting_words
from parallelrun_core.figures import duration

if TYPE_CHECKING:
    from parallelrun.models import Job, MiniBatch, Step


def show(client: Client, job_id: JobId, form: FormatOption = OutputFormat.TABLE) -> None:
    """Show one job."""
    from parallelrun.models import Pace
    from parallelrun.progress.steps import describe_step
    from parallelrun.progress.summary import summary

    answer = client.jobs.get(job_id)
    slow = _slowest(client, answer) if form is OutputFormat.TABLE else ""
    storage = _storage(client, answer) if form is OutputFormat.TABLE else ""

    pace = answer.pace if answer.pace is not None and not answer.has_ended else Pace()

    def log_hint(log: str) -> str:
        return f"parallelrun job logs {answer.id} {log}"

    lines = [
        ("id", answer.id),
        ("name", answer.name),
        ("type", answer.type),
        ("owner", answer.owner),
        ("step of", f"{answer.parent.job} ({answer.parent.step})" if answer.parent else ""),
        ("state", f"{answer.state}, paused" if answer.paused else standing(answer)),
        ("priority", answer.priority if answer.priority != "normal" else ""),
        ("steps", "\n".join(f"{step.name}: {describe_step(step)}{_of_job(step)}" for step in answer.steps)),
        ("progress", describe(answer.state, answer.progress, items_per_s=None, left_s=pace.left_s).partition(": ")[2]),
        ("cost", answer.progress.cost_text()),
        ("waiting", waiting_words(answer.waiting)),
        ("slowest", slow),
        ("storage", storage),
        ("mini-batch size", chosen_size(answer.progress)),
        ("submitted", answer.submitted),
        ("started", answer.started),
        ("ended", answer.ended),
        ("output", answer.output.path if answer.output else ""),
        ("outputs", "\n".join(f"{each.name}: {each.path}" for each in answer.outputs if each.path)),
        ("metrics", "\n".join(f"{name}: {value}" for name, value in answer.metrics.items())),
        ("notes", "\n".join(answer.notes)),
        ("hints", "\n".join(_hints(answer, log_hint))),
        ("failure", "\n".join(summary(answer, log_hint=log_hint)) if answer.failure else ""),
    ]
    show_one(answer, form, name=answer.id, lines=lines)


def _hints(job: Job, log_hint: Callable[[str], str]) -> list[str]:
    from parallelrun.progress.summary import hints

    retry, resume = (f"parallelrun job {verb} {job.id}" for verb in ("retry", "resume"))
    return hints(job, log_hint=log_hint, retry=retry, resume=resume)


def _of_job(step: Step) -> str:
    """The job of a step, unless it is named already."""
    return f" ({step.job})" if step.job and step.state != "running" and not step.reused else ""


def _slowest(client: Client, job: Job) -> str:
    """Return the slowest mini-batches, with their first files, and the one that runs for longest, a line for each."""
    from parallelrun.errors import ApiError

    if job.type != "parallel":
        return ""
    lines = []
    progress = job.progress
    if not job.has_ended and progress.longest >= 0 and progress.longest_since:
        runs_s = duration(time.time() - progress.longest_since)
        lines.append(f"mini-batch {progress.longest} runs for {runs_s} already{_inputs(client, job)}")
    try:
        decided = client.jobs.slowest(job.id) if progress.decided > progress.resumed else []
    except ApiError:  # a server of an earlier release, or one that is busy
        decided = []
    return "\n".join([*lines, *map(_slow, decided)])


def _inputs(client: Client, job: Job) -> str:
    """Return the first file of the mini-batch that runs for longest, and how many more it has."""
    from parallelrun.errors import ApiError

    try:
        inputs = client.jobs.inputs_of(job.id, job.progress.longest)
    except ApiError:  # a server that is busy
        return ""
    paths = [*inputs.files, *(each.path for each in inputs.ranges)]
    return _first_of(paths[0], inputs.total) if paths else ""


def _first_of(path: str, count: int) -> str:
    return f": {count:,} items, first {path}" if count > 1 else f": {path}"  # rows of it, or files after it


def _storage(client: Client, job: Job) -> str:
    """Return what was read, a line for each store or file system: how often, how much, and how long each took."""
    from parallelrun.errors import ApiError
    from parallelrun.progress.storage import storage_lines

    if job.type == "pipeline":
        return ""
    try:
        return "\n".join(storage_lines(client.jobs.storage(job.id)))
    except ApiError:  # a server that is busy, or the logs were removed
        return ""


def _slow(mini_batch: MiniBatch) -> str:
    inputs = _first_of(mini_batch.first_input, mini_batch.items or 0) if mini_batch.first_input else ""
    failed = " (failed)" if mini_batch.status == "failed" else ""
    return f"mini-batch {mini_batch.id}{failed} took {duration(mini_batch.run_s or 0.0)}{inputs}"
