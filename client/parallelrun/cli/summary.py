"""How a job has ended, and what to do about it, in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from parallelrun.models import Failure, Job
from parallelrun.progress.text import clean, duration, mini_batches

_TRACEBACK_CHARACTERS: Final = 8000


def summary(job: Job, *, log_hint: Callable[[str], str], retry: str = "") -> list[str]:
    """The lines to show for a job that has ended.

    Args:
        log_hint: says how to open a log, given its path in the job's logs.
        retry: how to retry what failed in a job that completed; empty if that can't be done.
    """
    progress = job.progress
    resumed = f" ({progress.resumed:,} taken over)" if progress.resumed else ""
    done = f"{mini_batches(progress)} mini-batches{resumed}"
    counts = f"{done}, {progress.rows:,} rows, {progress.items_failed:,} items failed"
    if job.state == "failed" and job.failure:
        return _failure(job.failure, log_hint)
    return [f"{job.state}{_after(job)}: {counts}", *hints(job, log_hint=log_hint, retry=retry)]


def hints(job: Job, *, log_hint: Callable[[str], str], retry: str) -> list[str]:
    """Warnings about a job that has completed: about its output, and about what failed within the thresholds."""
    lines = [f"warning: {clean(warning)}" for warning in job.warnings]
    failed = job.progress.failed
    if job.state == "completed" and failed:
        again = f"; retry: {retry}" if retry else ""
        which = "1 mini-batch has" if failed == 1 else f"{failed:,} mini-batches have"
        lines.append(f"{which} failed, within the thresholds; why: {log_hint('job_result.txt')}{again}")
    return lines


def _after(job: Job) -> str:
    """How long it took, if known."""
    if not job.started or not job.ended:
        return ""
    took_s = (datetime.fromisoformat(job.ended) - datetime.fromisoformat(job.started)).total_seconds()
    return f" in {took_s:.1f} s" if took_s < 10 else f" in {duration(took_s)}"


def _failure(failure: Failure, log_hint: Callable[[str], str]) -> list[str]:
    lines = [f"failed: {clean(failure.summary)}"]
    if failure.first_cause:
        lines.append(f"first cause: {clean(failure.first_cause)}")
    if failure.traceback:
        text = clean(failure.traceback.strip("\n"), lines=True, most=_TRACEBACK_CHARACTERS)
        lines += [f"  {line}" for line in text.split("\n")]
    if failure.sample_mini_batches:
        lines.append(f"sample mini-batches: {', '.join(map(str, failure.sample_mini_batches))}")
    if failure.log:
        lines.append(f"log: {log_hint(failure.log.removeprefix('logs/'))}")
    if failure.hint:
        lines.append(f"hint: {clean(failure.hint)}")
    return lines
