"""What a user can do about the commonest failures, in words."""

from __future__ import annotations

from parallelrun_core.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroup

SHORT_RETURNS = (
    "run() returned fewer rows than it was given items: compare Total and Succeeded in "
    "logs/sys/job_report/processed_mini-batches.csv"
)
ONE_FAILS_ALL = (
    "a run() that raises fails all items of its mini-batch, also those that are fine: catch in run() what one item "
    "raises, and return rows for the others; or have smaller mini-batches, as with mini_batch_size: 1"
)
NOT_INSTALLED = (
    "a package has to be named in the job, as in `environment: {pip: [NAME]}` or `environment: {conda_file: FILE}`: "
    "without one, workers run in the Python of their node; a module of your own has to be below `code`"
)


def what_to_do(progress: Progress, first: ErrorGroup) -> str:
    """What a user can do when run() raises."""
    if first.category != "RUN_EXCEPTION":
        return ""
    if is_about_a_package(first.message):
        return NOT_INSTALLED
    return ONE_FAILS_ALL if progress.items_failed > progress.failed else ""


def is_about_a_package(message: str) -> bool:
    """Whether an import has failed."""
    return message.startswith("ModuleNotFoundError")
