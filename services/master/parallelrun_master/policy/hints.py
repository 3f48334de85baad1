"""What a user can do about the most common failures, in words."""

from __future__ import annotations

from parallelrun_core.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroup

MIGHT_HAVE_FAILED = (
    "what failed is within the thresholds of the job; with a lower error_threshold, mini_batch_error_threshold or "
    "allowed_failed_percent, such a job fails instead"
)
SHORT_RETURNS = (
    "run() returned fewer rows than it was given items: compare Total and Succeeded in "
    "logs/sys/job_report/processed_mini-batches.csv"
)
ONE_FAILS_ALL = (
    "an exception in run() fails every item of its mini-batch: handle errors per item and return rows for the rest, "
    "or use smaller mini-batches (mini_batch_size: 1)"
)
NOT_INSTALLED = (
    "name the package in the job, as in `environment: {pip: [NAME]}` or `environment: {conda_file: FILE}`: without an "
    "environment, workers run in the Python of their node; your own modules must be below `code`"
)


def what_to_do(progress: Progress, first: ErrorGroup) -> str:
    """What a user can do when run() raises."""
    if first.category != "RUN_EXCEPTION":
        return ""
    if is_about_a_package(first.message):
        return NOT_INSTALLED
    return ONE_FAILS_ALL if progress.items_failed > progress.failed else ""


def what_is_lost(progress: Progress) -> str:
    """How much of a job has failed that completes all the same; empty when nothing has."""
    if not (progress.items_failed or progress.failed):
        return ""
    items = max(progress.items_scheduled, progress.items_done + progress.items_failed)
    lost = f"{progress.items_failed:,} of {items:,} items failed"
    if progress.failed:
        lost += f", with {progress.failed:,} of {progress.scheduled:,} mini-batches"
    return lost


def is_about_a_package(message: str) -> bool:
    """Whether an import has failed."""
    return message.startswith("ModuleNotFoundError")
