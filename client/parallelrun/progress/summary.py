"""The end of a job, and what to do about it, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from parallelrun.progress.steps import describe_step
from parallelrun.progress.text import clean, mini_batches, took
from parallelrun_core.answers.jobs import Job, PipelineStep
from parallelrun_core.figures import counted
from parallelrun_core.wire.ending import how_completed, what_failed, what_is_short
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress

_TRACEBACK_CHARACTERS: Final = 8000
_MOST_STEPS: Final = 20


def headline(job: Job) -> str:
    """Return how a job has ended, in one line. If something has failed although it completed, it says what, and why."""
    if job.state == "failed" and job.failure:
        return f"failed: {clean(job.failure.summary)}"
    if job.is_pipeline:
        return _pipeline_headline(job)
    if job.spec.get("command"):
        ended = ": the command ended with exit code 0" if job.state == "completed" else ""
        return f"{job.state}{took(job)}{ended}"
    progress = job.progress
    if job.state == "completed" and not is_clean(job):
        return f"completed{clean(how_completed(progress, job.errors))}"
    rows = what_is_short(progress) or f"{counted(progress.rows, 'row')}, {counted(progress.items_lost, 'item')} failed"
    return f"{job.state}{took(job)}: {_mini_batches(progress)}, {rows}"


def _mini_batches(progress: Progress) -> str:
    among = [f"{progress.resumed:,} taken over"] if progress.resumed else []
    among += [f"{progress.failed:,} failed"] if progress.failed else []
    return f"{mini_batches(progress)} mini-batches" + (f" ({', '.join(among)})" if among else "")


def _counts(job: Job) -> list[str]:
    """Return a line with the counts of a completed job in which something has failed: its headline has none."""
    if job.is_pipeline or job.spec.get("command") or job.state != "completed" or is_clean(job):
        return []
    return [f"{took(job)[1:] or 'in all'}: {_mini_batches(job.progress)}, {counted(job.progress.rows, 'row')}"]


def _pipeline_headline(job: Job) -> str:
    counts = Counter(step.state for step in job.steps)
    reused = sum(step.reused for step in job.steps)
    among = [f"{reused:,} reused"] if reused else []
    among += [f"{counts[state]:,} {state}" for state in ("failed", "canceled", "skipped", "waiting") if counts[state]]
    of_these = f" ({', '.join(among)})" if among else ""
    failed = what_failed(job.progress)
    but = f", but {failed}," if job.state == "completed" and failed else ""
    return f"{job.state}{but}{took(job)}: {counts['completed']:,}/{len(job.steps):,} steps{of_these}"


def _step_lines(job: Job, step_hint: Callable[[PipelineStep], str]) -> list[str]:
    """A line for each step that has not completed, up to some, and where its logs are."""
    bad = [step for step in job.steps if step.state != "completed"]
    lines = []
    for step in bad[:_MOST_STEPS]:
        lines.append(f"  {clean(step.name)}: {describe_step(step)}")
        if step.state == "failed" and (where := step_hint(step)):
            lines.append(f"    logs: {where}")
    return lines + ([f"  and {len(bad) - _MOST_STEPS:,} more"] if len(bad) > _MOST_STEPS else [])


def _pipeline_hints(job: Job, *, log_hint: Callable[[str], str], retry: str, resume: str) -> list[str]:
    if job.state == "failed" and job.failure:
        return failure_lines(job.failure, log_hint=log_hint)
    return hints(job, log_hint=log_hint, retry=retry, resume=resume)


def is_clean(job: Job) -> bool:
    """Return whether it has completed, and nothing has failed."""
    return job.state == "completed" and not what_failed(job.progress)


def is_flawless(job: Job) -> bool:
    """Return whether it has completed, and nothing has raised, timed out, died or been skipped with a warning.

    Items for which run() only returned no row count where the job has a threshold that they count for.
    """
    short_counts = job.progress.items_short > 0 and int(job.spec.get("error_threshold", -1)) >= 0
    return is_clean(job) and not job.skipped and not short_counts


def summary(
    job: Job,
    *,
    log_hint: Callable[[str], str],
    retry: str = "",
    resume: str = "",
    step_hint: Callable[[PipelineStep], str] = lambda _: "",
) -> list[str]:
    """The lines to show for a job that has ended; the first is its headline.

    Args:
        log_hint: says how to open a log, given its path in the job's logs.
        retry: how to retry what failed in a job that completed; empty if that can't be done.
        resume: how to let a job that was canceled go on; likewise.
        step_hint: says where the logs of a pipeline's step are; empty if that isn't known.
    """
    if job.is_pipeline:
        end_hints = _pipeline_hints(job, log_hint=log_hint, retry=retry, resume=resume)
        return [headline(job), *_step_lines(job, step_hint), *end_hints]
    if job.state == "failed" and job.failure:
        about_data = [f"warning: {clean(warning)}" for warning in job.warnings]
        return [headline(job), *failure_lines(job.failure, log_hint=log_hint), *about_data]
    return [headline(job), *_counts(job), *hints(job, log_hint=log_hint, retry=retry, resume=resume)]


def hints(job: Job, *, log_hint: Callable[[str], str], retry: str, resume: str = "") -> list[str]:
    """Warnings about a job that has completed: about its output, and about what failed within the thresholds; and how
    one that was canceled goes on."""
    lines = [f"warning: {clean(warning)}" for warning in job.warnings]
    failed = job.progress.failed
    if job.state == "completed" and failed:
        again = f"; retry: {retry}" if retry else ""
        which = "1 mini-batch has" if failed == 1 else f"{failed:,} mini-batches have"
        lines.append(f"{which} failed, within the thresholds; why: {log_hint('job_result.txt')}{again}")
    if job.state == "completed" and job.errors and job.progress.items_lost:
        again = f"; retry these: {retry}" if retry and not failed else ""
        lines.append(f"each failed item, with its cause: {log_hint('failed_items.csv')}{again}")
    if job.state == "canceled" and resume:
        lines.append(f"run only what has no result yet: {resume}")
    return lines


def failure_lines(failure: JobFailure, *, log_hint: Callable[[str], str], traceback: bool = True) -> list[str]:
    """Return what is known about a failure beyond its summary: the first cause, where to look, what to do."""
    lines = []
    if failure.first_cause:
        lines.append(f"first cause: {clean(failure.first_cause)}")
    if failure.traceback and traceback:
        text = clean(failure.traceback.strip("\n"), lines=True, most=_TRACEBACK_CHARACTERS)
        lines += [f"  {line}" for line in text.split("\n")]
    if failure.sample_mini_batches:
        lines.append(f"sample mini-batches: {', '.join(map(str, failure.sample_mini_batches))}")
    if failure.log:
        lines.append(f"log: {log_hint(failure.log.removeprefix('logs/'))}")
    if failure.hint:
        lines.append(f"hint: {clean(failure.hint)}")
    return lines
