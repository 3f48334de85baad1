"""What an earlier `parallelrun run` has left, for another one that goes on with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from parallelrun.embedded.run_folder import WORKING_DATA, link_or_copy
from parallelrun.embedded.services import Layout
from parallelrun_core.errors import InvalidInput
from parallelrun_core.jobfolder import JobFolder

_NOT_NEEDED = ("logs", "outputs", "journals")


def job_of(folder: Path) -> JobFolder:
    """The job of the run whose output folder this is.

    Raises:
        InvalidInput: its working data are not there.
    """
    root = Layout(home=folder.absolute() / WORKING_DATA / "cluster").root
    # A run has one job; beside it may be the one that it has itself gone on with.
    found = sorted(path.parent.name for path in (root / "jobs").glob("job_*/job.json"))
    if not found:
        hint = "they are kept when a job has failed, and otherwise with --keep"
        raise InvalidInput.at("--resume-from", f"{folder} holds no working data of a run", hint)
    return JobFolder(root, found[-1])


def bring(job: JobFolder, root: Path) -> None:
    """Let a cluster that has this root folder have that job, too, as one that has ended."""

    def leave_out(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name in _NOT_NEEDED] if Path(folder) == job.path else []

    target = JobFolder(root, job.job_id).path
    shutil.copytree(job.path, target, copy_function=link_or_copy, ignore=leave_out, symlinks=True)
